export * from './audit.ts';
export * from './exercises.ts';
export * from './idempotency.ts';
export * from './outbound.ts';
export * from './programs.ts';
export * from './renders.ts';
