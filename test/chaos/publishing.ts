import type { Answer, Poll } from './checker/evidence.ts';
import type { Clinic } from './clinic.ts';
import type { Edges } from './edges.ts';
import { type Load, SPECIALISTS, type TimedStep } from './load.ts';
import { pause, playTimed } from './patience.ts';

const POLL_EVERY_MS = 100;

export interface Publishing {
  answers: Answer[];
  polls: Poll[];
  /** Carries the plan out; resolves when every step has been answered or given up. */
  play(startedAt: number): Promise<void>;
  /** Publishes a programme once more, by whoever made it. */
  publishAgain(programId: string): Promise<void>;
  /** Asks for the readiness of what has been published, by one edge after the other, until it is told to end. */
  watch(until: AbortSignal): Promise<void>;
}

/** The clinics at work, by the plan, and what they were answered. */
export function createPublishing(edges: Edges, clinic: Clinic, load: Load, signal: AbortSignal): Publishing {
  const answers: Answer[] = [];
  const polls: Poll[] = [];
  const programs = new Map<number, Promise<string>>();
  const owners = new Map<string, number>();
  const tokenOf = (by: number) => clinic.tokens[by] ?? '';

  const makeProgram = async (number: number, by: number, recipes: readonly number[]) => {
    const items = recipes.flatMap((index) => {
      const recipe = load.recipes[index];
      const exerciseId = clinic.exerciseIds[recipe?.exercise ?? -1];
      return recipe && exerciseId !== undefined ? [{ exerciseId, dose: recipe.dose }] : [];
    });
    const draft = { title: `Programme ${number}`, language: 'en', sessions: [{ title: 'One', items }] };
    const { body } = await edges.ask(tokenOf(by), (api) => api.POST('/v1/programs', { body: draft }));
    owners.set(body.id, by);
    return body.id;
  };
  const draft = (number: number, by: number, recipes: readonly number[]) => {
    const made = makeProgram(number, by, recipes);
    // Whoever waits for it hears of the failure; until then it is nobody's unhandled rejection.
    made.catch(() => undefined);
    programs.set(number, made);
  };

  const publish = async (by: number, program: Promise<string>) => {
    const answer: Answer = {
      ...{ programId: null, by: SPECIALISTS[by]?.name ?? '', counts: null },
      ...{ askedAt: Date.now(), answeredAt: 0, tries: 0 },
    };
    try {
      answer.programId = await program;
      answer.askedAt = Date.now();
      const params = { path: { id: answer.programId } };
      const { body, tries } = await edges.ask(tokenOf(by), (api) => api.POST('/v1/programs/{id}/publish', { params }));
      Object.assign(answer, { counts: body, tries });
    } catch (error) {
      answer.refusal = String(error);
    }
    answer.answeredAt = Date.now();
    if (!signal.aborted) answers.push(answer);
  };

  const ofNumber = (number: number) => programs.get(number) ?? Promise.reject(new Error(`no programme ${number}`));
  const play = async (step: TimedStep) => {
    switch (step.kind) {
      case 'publish': {
        const both = [step, ...(step.twin ? [{ ...step.twin, recipes: step.recipes }] : [])];
        for (const { program, by, recipes } of both) draft(program, by, recipes);
        // The drafts first: what is to race is the two publishes.
        await Promise.allSettled(both.map(({ program }) => ofNumber(program)));
        await Promise.all(both.map(({ program, by }) => publish(by, ofNumber(program))));
        return;
      }
      case 'publish-again':
        return publish(step.by, ofNumber(step.program));
      case 'assign': {
        const programId = await ofNumber(step.program).catch(() => null);
        if (programId === null) return;
        const given = { params: { path: { id: programId } }, body: { patientId: `patient-${step.program}` } };
        await edges
          .ask(tokenOf(step.by), (api) => api.POST('/v1/programs/{id}/assignments', given))
          .catch(() => undefined);
      }
    }
  };

  return {
    answers,
    polls,
    play: (startedAt) => playTimed(load.steps, { startedAt, signal, play }),
    publishAgain: (programId) => publish(owners.get(programId) ?? 0, Promise.resolve(programId)),
    watch: async (until) => {
      for (let turn = 0; !until.aborted; turn++) {
        await pause(POLL_EVERY_MS, until);
        const published = answers.flatMap(({ programId, counts }) => (programId !== null && counts ? [programId] : []));
        const programId = published[Math.floor(turn / edges.urls.length) % Math.max(1, published.length)];
        const edge = edges.urls[turn % edges.urls.length];
        if (programId === undefined || edge === undefined) continue;
        const askedAt = Date.now();
        const params = { path: { id: programId } };
        const token = tokenOf(owners.get(programId) ?? 0);
        const answer = await edges
          .once(edge, token, (api) => api.GET('/v1/programs/{id}/readiness', { params }))
          .catch(() => null);
        if (!answer?.data) continue;
        polls.push({ programId, edge, askedAt, answeredAt: Date.now(), status: answer.data.status });
      }
    },
  };
}
