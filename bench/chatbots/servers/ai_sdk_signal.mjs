// The AI SDK on Hono, the request's signal handed on to the model.
import { openai } from '@ai-sdk/openai';
import { serve } from '@hono/node-server';
import { convertToModelMessages, isStepCount, streamText, tool } from 'ai';
import { Hono } from 'hono';
import { z } from 'zod';

const weather = tool({
  description: 'The weather in a city',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `It is sunny in ${city}.`,
});

const app = new Hono();

app.post('/api/chat', async (c) => {
  const { messages } = await c.req.json();
  const result = streamText({
    model: openai('gpt-4o-mini'),
    messages: await convertToModelMessages(messages),
    tools: { weather },
    stopWhen: isStepCount(5),
    abortSignal: c.req.raw.signal,
  });
  return result.toUIMessageStreamResponse();
});

serve({ fetch: app.fetch, port: Number(process.env.PORT), hostname: '127.0.0.1' });
