"""What an assistant knows from its owner's pages: `motamot learn` reads them into a file, a model searches it."""
