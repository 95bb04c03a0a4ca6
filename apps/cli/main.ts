#!/usr/bin/env node
import { run } from './run.ts';

// Whoever reads may have had enough (`| head`); what was begun is done all the same.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

const status = await run(process.argv);
if (status !== null) process.exit(status);
