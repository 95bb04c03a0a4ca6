export * from './audit.ts';
export * from './exercises.ts';
export * from './programs.ts';
export * from './renders.ts';
