// The AI SDK behind Node's own server, as its example for Node writes it: nothing tells it that a visitor leaves.
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { openai } from '@ai-sdk/openai';
import { convertToModelMessages, isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';

const weather = tool({
  description: 'The weather in a city',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `It is sunny in ${city}.`,
});

createServer(async (request, response) => {
  if (request.method !== 'POST' || request.url !== '/api/chat') {
    response.writeHead(404).end();
    return;
  }
  const { messages } = await json(request);
  const result = streamText({
    model: openai('gpt-4o-mini'),
    messages: await convertToModelMessages(messages),
    tools: { weather },
    stopWhen: isStepCount(5),
  });
  result.pipeUIMessageStreamToResponse(response);
}).listen(Number(process.env.PORT), '127.0.0.1');
