import { handover, startConsumer } from './consumers.ts';
import type { Handover, Setup } from './variants.ts';

/** The worker's process of one run. It says so when it takes jobs, and ends when it is told or its parent is gone. */
const setup = JSON.parse(process.argv[2] ?? '') as Setup;
const stop = await startConsumer(setup);
process.on('message', (message: Handover) => {
  if ('renders' in message) handover.emit('renders', message.renders);
  else handover.emit('webhook', message.webhook);
});
const leave = () => void stop().then(() => process.exit(0));
process.once('SIGTERM', leave).once('disconnect', leave);
process.send?.('ready');
