import {
  createLocalJWKSet,
  createRemoteJWKSet,
  decodeJwt,
  errors,
  type JWTVerifyGetKey,
  jwtVerify,
  SignJWT,
} from 'jose';
import { z } from 'zod';
import { type Role, role } from '../domain/roles.ts';
import { AppError } from '../errors.ts';

/** Who is asking, as their token says. `org` is null for those who belong to no organisation. */
export interface Who {
  sub: string;
  role: Role;
  org: string | null;
}

/** Asymmetric only: a JWKS is public, so an HMAC "signed" with one of its keys proves nothing (RFC 8725 §2.1). */
const JWKS_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'];

const JWKS_TIMEOUT_MS = 5_000;
/** After the key set could not be fetched, it is not asked for again for so long. */
const JWKS_PAUSE_MS = 10_000;
/** How long its keys are believed while it cannot be fetched: an outage is mended in a day. */
const JWKS_KEPT_MS = 24 * 3_600_000;

/** How far apart two machines' clocks may be: a token is good so much longer than `exp` and before `nbf` (RFC 7519 §4.1.4). */
const CLOCK_TOLERANCE_SECONDS = 5;

const ORGLESS: readonly Role[] = ['superadmin', 'ops'];

/** Who a token is of. Printable: it is written into rows, and Postgres refuses a NUL. */
export const subject = z
  .string()
  .regex(/^[^\p{Cc}]{1,200}$/u, 'expects 1 to 200 characters, none of them a control character');

const claims = z
  .object({
    sub: subject,
    role,
    org: z.guid().toLowerCase().optional(),
  })
  .refine((who) => ORGLESS.includes(who.role) === (who.org === undefined), {
    path: ['org'],
    error: 'expects an organisation for a manager, specialist or patient, and none for a superadmin or ops',
  })
  .transform(({ sub, role, org }): Who => ({ sub, role, org: org ?? null }));

export interface TokenRequest {
  /** The shared HS256 secret. */
  secret: string;
  sub: string;
  role: Role;
  /** The organisation's id; needed by a manager, specialist or patient, refused for the others. */
  org?: string | undefined;
  ttlSeconds: number;
  issuer?: string | undefined;
  audience?: string | undefined;
}

/** Makes a token that a verifier with the same secret accepts for `ttlSeconds`. Throws where the claims do not fit together. */
export async function issueToken(request: TokenRequest): Promise<string> {
  const { sub, role, org } = claims.parse({ sub: request.sub, role: request.role, org: request.org });
  const now = Math.floor(Date.now() / 1000);
  const jwt = new SignJWT({ role, ...(org !== null && { org }) })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setSubject(sub)
    .setIssuedAt(now)
    .setExpirationTime(now + request.ttlSeconds);
  if (request.issuer !== undefined) jwt.setIssuer(request.issuer);
  if (request.audience !== undefined) jwt.setAudience(request.audience);
  return jwt.sign(new TextEncoder().encode(request.secret));
}

/** How many more seconds a verified token is good for, clocks' tolerance aside; negative where it is none any more. */
export const secondsLeft = (token: string): number => (decodeJwt(token).exp ?? 0) - Math.floor(Date.now() / 1000);

export interface VerifierOptions {
  /** Tokens are HS256 under this secret … */
  secret?: string | undefined;
  /** … or signed by a key of this set, which is fetched when needed and cached. Exactly one of the two. */
  jwksUrl?: string | undefined;
  /** Required of the token where given. */
  issuer?: string | undefined;
  audience?: string | undefined;
}

/**
 * Answers who a token speaks for, or throws `unauthorized`; `unavailable` where the key set cannot be fetched, because
 * that is no fault of the caller.
 */
export type Verifier = (token: string) => Promise<Who>;

export function createVerifier({ secret, jwksUrl, issuer, audience }: VerifierOptions): Verifier {
  const { algorithms, getKey } = keyFinder(secret, jwksUrl);
  const options = {
    algorithms,
    clockTolerance: CLOCK_TOLERANCE_SECONDS,
    requiredClaims: ['exp', 'sub'],
    ...(issuer !== undefined && { issuer }),
    ...(audience !== undefined && { audience }),
  };
  return async (token) => {
    try {
      const { payload } = await jwtVerify(token, getKey, options);
      return claims.parse(payload);
    } catch (error) {
      if (error instanceof AppError) throw error;
      throw new AppError('unauthorized', { detail: String(error), cause: error });
    }
  };
}

function keyFinder(secret?: string, jwksUrl?: string): { algorithms: string[]; getKey: JWTVerifyGetKey } {
  if (secret !== undefined && jwksUrl === undefined) {
    const key = new TextEncoder().encode(secret);
    return { algorithms: ['HS256'], getKey: () => key };
  }
  if (secret !== undefined || jwksUrl === undefined) throw new TypeError('expects a secret or a JWKS URL, not both');
  return { algorithms: JWKS_ALGORITHMS, getKey: remoteKeys(new URL(jwksUrl)) };
}

/**
 * The keys of a set at a URL. jose fetches it at first use, every ten minutes, and, at most every half minute, for a key id
 * that it does not know: so new keys are found, and made-up ids are no way to make us ask. What jose leaves open is a
 * provider that is away: then keys that it published lately go on being good, and it is asked again only after a pause.
 */
function remoteKeys(url: URL): JWTVerifyGetKey {
  const remote = createRemoteJWKSet(url, { timeoutDuration: JWKS_TIMEOUT_MS });
  let fetchedAt = Number.NEGATIVE_INFINITY;
  let away: { until: number; error: unknown } | undefined;

  return async (header, token) => {
    if (away === undefined || Date.now() >= away.until) {
      try {
        const key = await remote(header, token);
        fetchedAt = Date.now();
        away = undefined;
        return key;
      } catch (error) {
        if (TOKEN_FAULTS.some((fault) => error instanceof fault)) throw error;
        away = { until: Date.now() + JWKS_PAUSE_MS, error };
      }
    }
    const published = Date.now() - fetchedAt < JWKS_KEPT_MS ? remote.jwks() : undefined;
    const key = published && (await createLocalJWKSet(published)(header, token).catch(() => undefined));
    if (key) return key;
    throw new AppError('unavailable', { detail: `the key set: ${String(away.error)}`, cause: away.error });
  };
}

/** What the key set says about the token's header; anything else it throws means that the set could not be had. */
const TOKEN_FAULTS = [errors.JWKSNoMatchingKey, errors.JWKSMultipleMatchingKeys, errors.JOSENotSupported];
