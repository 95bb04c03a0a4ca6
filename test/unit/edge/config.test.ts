import { describe, expect, it } from 'vitest';
import { loadEdgeConfig } from '../../../lib/config/edge.ts';
import { ConfigError, type Env } from '../../../lib/config/env.ts';

const good: Env = {
  DATABASE_URL: 'postgres://localhost/bakehouse',
  REDIS_URL: 'redis://localhost',
  MEDIA_URL: 'http://localhost:8081',
  MEDIA_TOKEN: '0123456789abcdef0123456789abcdef',
  JWT_SECRET: '0123456789abcdef0123456789abcdef',
  BUNNY_READ_ONLY_KEY: 'key-one, key-two',
  BUNNY_CDN_URL: 'https://vz-1.b-cdn.net',
};

function problemsOf(env: Env): string[] {
  try {
    loadEdgeConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('the configuration of the edge', () => {
  it('needs seven variables and has a default for the rest', () => {
    const config = loadEdgeConfig(good);
    expect(config).toMatchObject({
      EDGE_HOST: '127.0.0.1',
      OPS_USER: 'ops',
      BUNNY_READ_ONLY_KEY: ['key-one', 'key-two'],
    });
    expect(config.OPS_PASSWORD ?? config.CORS_ORIGIN ?? config.BUNNY_CDN_TOKEN_KEY).toBeUndefined();
  });

  it('names everything that is wrong at once', () => {
    const problems = problemsOf({ EDGE_PORT: 'http', MEDIA_TOKEN: 'short' }).join('\n');
    for (const name of ['EDGE_PORT', 'MEDIA_TOKEN', 'DATABASE_URL', 'REDIS_URL', 'MEDIA_URL', 'BUNNY_CDN_URL']) {
      expect(problems).toContain(`${name}:`);
    }
    expect(problems).toMatch(/JWT_SECRET: .*JWKS_URL/);
    expect(problems).toMatch(/BUNNY_READ_ONLY_KEY: .*BUNNY_WEBHOOK_TOKEN/);
  });

  it('takes a blank variable for unset, and for a number nothing but digits', () => {
    expect(loadEdgeConfig({ ...good, EDGE_PORT: ' ', SWEEP_MS: '\t' })).toEqual(loadEdgeConfig(good));
    for (const number of ['0x10', '1e3', '10.5', '5000 ', '+1', 'NaN'])
      expect(problemsOf({ ...good, EDGE_PORT: number })).toEqual([expect.stringMatching(/^EDGE_PORT: expects /)]);
  });

  it('lets webhooks into the inner network in development only', () => {
    const lifted = { ...good, WEBHOOK_ALLOW_PRIVATE: 'true' };
    expect(problemsOf(lifted)).toEqual([]);
    expect(problemsOf({ ...lifted, NODE_ENV: 'production' })).toEqual([
      expect.stringMatching(/^WEBHOOK_ALLOW_PRIVATE: is for development/),
    ]);
  });

  it('takes several keys for the secrets of webhooks, none of them short or, in production, an example', () => {
    const [one, two] = ['0123456789abcdef0123456789abcdef', 'fedcba9876543210fedcba9876543210'];
    const keys = { ...good, WEBHOOK_SIGNING_KEY: `${one}, ${two}` };
    expect(loadEdgeConfig(keys).WEBHOOK_SIGNING_KEY).toEqual([one, two]);
    expect(problemsOf({ ...good, WEBHOOK_SIGNING_KEY: `${one},short` })).toHaveLength(1);
    const example = { ...good, NODE_ENV: 'production', WEBHOOK_SIGNING_KEY: `change-me-${one}` };
    expect(problemsOf(example)).toEqual([expect.stringMatching(/^WEBHOOK_SIGNING_KEY: is a development value/)]);
  });

  it('leaves no way to run with an open webhook', () => {
    const { BUNNY_READ_ONLY_KEY: _, ...without } = good;
    expect(problemsOf(without)).toEqual([expect.stringMatching(/^BUNNY_READ_ONLY_KEY: .*never open/)]);
    expect(problemsOf({ ...without, BUNNY_WEBHOOK_TOKEN: '0123456789abcdef' })).toEqual([]);
  });

  it('takes a secret or a key set for tokens, not both and not neither', () => {
    const { JWT_SECRET: _, ...without } = good;
    expect(problemsOf(without)).toEqual([expect.stringMatching(/^JWT_SECRET: /)]);
    expect(problemsOf({ ...without, JWKS_URL: 'https://id.test/jwks' })).toEqual([]);
    expect(problemsOf({ ...good, JWKS_URL: 'https://id.test/jwks' })).toEqual([expect.stringMatching(/^JWKS_URL: /)]);
  });

  it('refuses development values in production, and only there', () => {
    const weak = {
      ...good,
      JWT_SECRET: 'development-secret-0123456789abcdef',
      MEDIA_TOKEN: 'change-me-change-me',
      OPS_PASSWORD: 'password-password',
      BUNNY_READ_ONLY_KEY: 'key-one,dev-key',
    };
    expect(problemsOf(weak)).toEqual([]);
    const problems = problemsOf({ ...weak, NODE_ENV: 'production' });
    expect(problems.map((problem) => problem.split(':')[0]).sort()).toEqual([
      'BUNNY_READ_ONLY_KEY',
      'JWT_SECRET',
      'MEDIA_TOKEN',
      'OPS_PASSWORD',
    ]);
    expect(problems.join()).not.toContain('0123456789abcdef');
  });
});
