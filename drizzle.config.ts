import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  casing: 'snake_case',
  schema: './lib/db/schema/index.ts',
  out: './drizzle',
});
