import { type Answer, createJudge, type DescribedOperation, type Document } from '../support/openapi.ts';

export interface Heard {
  status: number;
  headers: Headers;
  /** Of a stream, its beginning. */
  text: string;
}

/** Headers that an answer has only where the document says so. */
const TOLD = ['ETag', 'Retry-After', 'RateLimit', 'RateLimit-Policy', 'Idempotency-Replayed', 'WWW-Authenticate'];

/** What is wrong with an answer by the document; empty where nothing is. */
export function createVerdict(document: Document) {
  const fault = createJudge(document);

  const ofBody = (answer: Answer, { headers, text }: Heard): string[] => {
    if (!answer.content) return text === '' ? [] : ['a body where none is declared'];
    const type = (headers.get('content-type') ?? '').split(';')[0] ?? '';
    const media = answer.content[type];
    if (!media) return [`an undeclared type of body: ${type || 'none'}`];
    if (!type.endsWith('json')) return [];
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      return ['a body that is no JSON'];
    }
    const misfit = fault(media.schema, body);
    if (misfit !== null) return [`a body against its schema: ${misfit}`];
    if (type !== 'application/problem+json') return [];
    const { code } = body as { code: string };
    return code in (media.examples ?? {}) ? [] : [`an undeclared code: ${code}`];
  };

  return (operation: DescribedOperation, heard: Heard): string[] => {
    const { status, headers } = heard;
    const found: string[] = [];
    if (status >= 500) found.push('a failure of ours');
    if (!headers.get('x-request-id')) found.push('no X-Request-Id');
    const answer = operation.responses[status];
    if (!answer) return [...found, `an undeclared status, ${status}`];
    if (operation.path.startsWith('/v1/') && status !== 401 && !headers.has('RateLimit')) found.push('no RateLimit');
    for (const name of TOLD) {
      if (headers.has(name) && !(name in (answer.headers ?? {}))) found.push(`an undeclared header: ${name}`);
    }
    return [...found, ...ofBody(answer, heard)];
  };
}
