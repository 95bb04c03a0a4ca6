/**
 * Made of the OpenAPI document by `npm run generate:client`; a test fails where it is not what that would make.
 */

export interface paths {
    "/v1/exercises": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List exercises
         * @description The platform’s and the clinic’s own, newest first.
         */
        get: operations["listExercises"];
        put?: never;
        /**
         * Make an exercise
         * @description A superadmin makes platform exercises, which all clinics share; a manager makes those of their clinic.
         */
        post: operations["createExercise"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/exercises/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an exercise with its cue clips
         * @description The platform’s and the clinic’s own; another clinic’s answers 404.
         */
        get: operations["getExercise"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change names or marks
         * @description What is given replaces what was there. Videos already baked stay as they are.
         */
        patch: operations["updateExercise"];
        trace?: never;
    };
    "/v1/exercises/{id}/source": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Upload the source video
         * @description The body is the file itself. It is streamed on, measured and kept; it becomes the current source of the exercise. Errors in the report refuse it, warnings do not.
         */
        put: operations["uploadSource"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/exercises/{id}/cues/{language}/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Upload a voice clip
         * @description One clip for each language and cue; a new one takes the place of the old. Names: `start`, `hold`, `rest`, `next-set`, `switch-side`, `last-rep`, `done`, `countdown-1` to `countdown-3`, `count-1` to `count-100`.
         */
        put: operations["uploadCue"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/programs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List programmes
         * @description The clinic’s, newest first.
         */
        get: operations["listPrograms"];
        put?: never;
        /**
         * Make a draft
         * @description Items may use the platform’s exercises and those of the programme’s own clinic.
         */
        post: operations["createProgram"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/programs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a programme with its sessions and items
         * @description As it was made, or as it is in its draft; how its videos stand is told by its renders.
         */
        get: operations["getProgram"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change a draft
         * @description Given sessions replace all that were there. What is published is never changed.
         */
        patch: operations["updateProgram"];
        trace?: never;
    };
    "/v1/programs/{id}/archive": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Take a programme out of use
         * @description Patients do not see it any more, and it is published and assigned no more. Its videos stay. Archiving again changes nothing.
         */
        post: operations["archiveProgram"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/programs/{id}/copy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make a new version
         * @description A draft with the same sessions and items, to be changed and published: what is published never changes.
         */
        post: operations["copyProgram"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/programs/{id}/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Add a session of the library
         * @description Puts a copy of a published session at the end of a draft programme.
         */
        post: operations["attachSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the sessions that stand alone
         * @description The clinic’s, newest first.
         */
        get: operations["listSessions"];
        put?: never;
        /**
         * Make a session that stands alone
         * @description A draft for the clinic’s library. Once it is published, programmes may take copies of it.
         */
        post: operations["createSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a session that stands alone, with its items
         * @description Of the clinic’s library. A session of a programme is found with the programme.
         */
        get: operations["getSession"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change a draft session
         * @description Given items replace all that were there. What is published is never changed.
         */
        patch: operations["updateSession"];
        trace?: never;
    };
    "/v1/sessions/{id}/archive": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Take a session out of the library
         * @description Programmes take no copies of it any more; those that they have stay. Archiving again changes nothing.
         */
        post: operations["archiveSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/programs/{id}/publish": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Publish
         * @description Freezes the programme and queues each video that nobody has baked before. Publishing again changes nothing but queues anew what has failed.
         */
        post: operations["publishProgram"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/programs/{id}/publish-preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What a publish would do
         * @description How many videos are ready, how many are to be made, and how long that takes. Changes nothing.
         */
        get: operations["previewPublish"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/publish": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Publish a session that stands alone
         * @description As for a programme. A session of a programme is published with it.
         */
        post: operations["publishSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/programs/{id}/renders": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Watch the videos of a programme
         * @description One for each different video, with what it is at and why it failed; items with one recipe share one.
         */
        get: operations["listProgramRenders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/renders/{id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ask for a video again
         * @description For one that failed, and for one that waits before it is tried again. One that is ready is made anew only with `force`, by a superadmin; until then nobody can play it.
         */
        post: operations["retryRender"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/renders/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give up a video that is being made
         * @description Refused where somebody else needs it: another clinic, or, for a specialist, a colleague. It has failed then, with the code `cancelled`, until somebody asks for it again.
         */
        post: operations["cancelRender"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/programs/{id}/assignments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give the programme to a patient
         * @description May be done before it is published or ready; the patient sees it once it is published. Videos that it still lacks go before others of the same specialist.
         */
        post: operations["assignProgram"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/programs/{id}/assignments/{patientId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Take the programme back from a patient
         * @description It is gone from the patient’s programmes at once; nothing that was baked is lost.
         */
        delete: operations["unassignProgram"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me/programs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * My programmes
         * @description What is assigned to the patient and published, newest assignment first.
         */
        get: operations["listMyPrograms"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/programs/{id}/readiness": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Does it play yet?
         * @description For the patient it is assigned to, once published, and for its clinic. Poll it with `If-None-Match`: 304 while nothing has changed. With `wait` the answer comes when it is another than you know (or, where you name none, not preparing any more), at the latest after so many seconds. With `Accept: text/event-stream` it is sent at once and whenever it changes, as events named `readiness` with the same object as data.
         */
        get: operations["getReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/notifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What I am to be told
         * @description Newest first. A clinic’s managers hear of renders that failed and of webhook endpoints that were disabled, superadmins of those of platform exercises, patients of programmes that are ready, where the assignment asks for it.
         */
        get: operations["listNotifications"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/notifications/{id}/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * I have read it
         * @description For this person alone; reading it again changes nothing.
         */
        post: operations["readNotification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/play": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What to play, in order
         * @description Addresses only for what really plays. For the patient it is assigned to and for its clinic.
         */
        get: operations["playSession"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sessions/{id}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begin the session
         * @description Refused until every video of the session plays.
         */
        post: operations["startRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhook-endpoints": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the endpoints
         * @description Newest first.
         */
        get: operations["listWebhookEndpoints"];
        put?: never;
        /**
         * Have events sent to a server of yours
         * @description As docs/webhooks.md says: signed after Standard Webhooks, tried again for three days.
         */
        post: operations["createWebhookEndpoint"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhook-endpoints/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an endpoint
         * @description As it is now; its secret is not shown again.
         */
        get: operations["getWebhookEndpoint"];
        put?: never;
        post?: never;
        /**
         * Delete an endpoint
         * @description What has not been delivered to it never will be.
         */
        delete: operations["deleteWebhookEndpoint"];
        options?: never;
        head?: never;
        /**
         * Change an endpoint
         * @description Nothing new is sent to one that is disabled; what waited then is sent when it is enabled again.
         */
        patch: operations["changeWebhookEndpoint"];
        trace?: never;
    };
    "/v1/webhook-endpoints/{id}/rotate-secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Get a new secret
         * @description Each that is replaced goes on signing for 24 hours; a sixth rotation within them is refused with 429.
         */
        post: operations["rotateWebhookSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhook-endpoints/{id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What was sent, and what became of it
         * @description Newest first; kept for a month.
         */
        get: operations["listWebhookDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhook-endpoints/{id}/deliveries/{deliveryId}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send it again
         * @description At once, under the same `webhook-id`, delivered before or not; tried again from the beginning of the schedule.
         */
        post: operations["replayWebhookDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhook-endpoints/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a test
         * @description A `webhook.test` event, whatever events the endpoint has chosen; its deliveries say what became of it.
         */
        post: operations["testWebhookEndpoint"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/bunnystream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Bunny Stream tells of a video
         * @description Signed with the library’s read-only key (`X-BunnyStream-Signature`, HMAC-SHA256 over the raw body), or called with `?token=`. Stored before it is answered, applied afterwards; the same delivery may come any number of times.
         */
        post: operations["receiveBunnyWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Is the process alive?
         * @description Asks nobody else: a restart would not mend what is away.
         */
        get: operations["checkHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Should requests be sent here?
         * @description Not without Postgres, and not while shutting down. Without Redis all goes on, with more delay: `degraded`.
         */
        get: operations["checkReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        ExerciseDetail: components["schemas"]["Exercise"] & {
            cues: {
                language: string;
                name: string;
                sha256: string;
                durationMs: number;
                /** Format: date-time */
                updatedAt: string;
            }[];
        };
        Exercise: {
            /** Format: uuid */
            id: string;
            /** @enum {string} */
            tier: "platform" | "org";
            /** Format: uuid */
            orgId: string | null;
            names: {
                [key: string]: string;
            };
            repMarks: {
                startMs?: number;
                turnMs?: number;
                endMs?: number;
            };
            /** @description The video uploaded last; null before the first. */
            source: {
                sha256: string;
                bytes: number;
                /** @description Measured by decoding. */
                durationMs: number;
                warnings: {
                    code: string;
                    /** @enum {string} */
                    severity: "error" | "warning";
                    sentence: string;
                }[];
                /** Format: date-time */
                uploadedAt: string;
            } | null;
            /** Format: date-time */
            createdAt: string;
            /** Format: date-time */
            updatedAt: string;
        };
        /** @description RFC 9457 problem details. */
        Problem: {
            type: string;
            title: string;
            status: number;
            detail: string;
            /** @description Stable; the sentences are not. */
            code: string;
            errors?: {
                path: string;
                message: string;
                code?: string;
            }[];
        };
        /** @description What was measured. `errors` is empty here: a file with errors is refused and not kept. */
        UploadReport: {
            facts: {
                durationMs: number;
                frames: number;
                width: number;
                height: number;
                frameRate: number;
                variableFrameRate: boolean;
                videoCodec: string | null;
                audioCodec: string | null;
                container: string;
            };
            errors: {
                code: string;
                /** @enum {string} */
                severity: "error" | "warning";
                sentence: string;
            }[];
            warnings: {
                code: string;
                /** @enum {string} */
                severity: "error" | "warning";
                sentence: string;
            }[];
            /** @description Of the bytes as they were sent. */
            sha256: string;
            bytes: number;
        };
        ProgramDetail: components["schemas"]["Program"] & {
            sessions: {
                /** Format: uuid */
                id: string;
                title: string;
                /** @enum {string} */
                status: "draft" | "published" | "archived";
                items: {
                    /** Format: uuid */
                    id: string;
                    /** Format: uuid */
                    exerciseId: string;
                    exerciseName: string;
                    dose: {
                        /** @default 3 */
                        sets?: number;
                        /** @default 10 */
                        reps?: number;
                        /**
                         * @default {
                         *       "out": null,
                         *       "hold": null,
                         *       "back": null,
                         *       "pause": null
                         *     }
                         */
                        tempo?: {
                            /** @default null */
                            out?: number | null;
                            /** @default null */
                            hold?: number | null;
                            /** @default null */
                            back?: number | null;
                            /** @default null */
                            pause?: number | null;
                        };
                        /** @default 30 */
                        restSeconds?: number;
                        /**
                         * @default none
                         * @enum {string}
                         */
                        sides?: "none" | "left-right" | "alternating";
                        /** @default 5 */
                        leadInSeconds?: number;
                        /**
                         * @default voice
                         * @enum {string}
                         */
                        cues?: "voice" | "beeps" | "none";
                        /** @default -16 */
                        loudness?: number;
                    };
                    /**
                     * Format: uuid
                     * @description What the item plays; null before publish.
                     */
                    renderId: string | null;
                }[];
            }[];
        };
        Program: {
            /** Format: uuid */
            id: string;
            /** Format: uuid */
            orgId: string;
            title: string;
            language: string;
            /** @enum {string} */
            status: "draft" | "published" | "archived";
            createdBy: string;
            /** Format: date-time */
            createdAt: string;
            /** Format: date-time */
            updatedAt: string;
            /** Format: date-time */
            publishedAt: string | null;
        };
        SessionDetail: components["schemas"]["Session"] & {
            items: {
                /** Format: uuid */
                id: string;
                /** Format: uuid */
                exerciseId: string;
                exerciseName: string;
                dose: {
                    /** @default 3 */
                    sets?: number;
                    /** @default 10 */
                    reps?: number;
                    /**
                     * @default {
                     *       "out": null,
                     *       "hold": null,
                     *       "back": null,
                     *       "pause": null
                     *     }
                     */
                    tempo?: {
                        /** @default null */
                        out?: number | null;
                        /** @default null */
                        hold?: number | null;
                        /** @default null */
                        back?: number | null;
                        /** @default null */
                        pause?: number | null;
                    };
                    /** @default 30 */
                    restSeconds?: number;
                    /**
                     * @default none
                     * @enum {string}
                     */
                    sides?: "none" | "left-right" | "alternating";
                    /** @default 5 */
                    leadInSeconds?: number;
                    /**
                     * @default voice
                     * @enum {string}
                     */
                    cues?: "voice" | "beeps" | "none";
                    /** @default -16 */
                    loudness?: number;
                };
                /**
                 * Format: uuid
                 * @description What the item plays; null before publish.
                 */
                renderId: string | null;
            }[];
        };
        Session: {
            /** Format: uuid */
            id: string;
            /** Format: uuid */
            orgId: string;
            title: string;
            language: string;
            /** @enum {string} */
            status: "draft" | "published" | "archived";
            createdBy: string | null;
            /** Format: date-time */
            createdAt: string;
            /** Format: date-time */
            updatedAt: string;
            /** Format: date-time */
            publishedAt: string | null;
        };
        /** @description Different videos that the programme needs; items with one recipe share one. */
        PublishCounts: {
            total: number;
            ready: number;
            queued: number;
            inProgress: number;
            failed: number;
        };
        PublishPreview: {
            /** @description Different videos that the programme needs. */
            total: number;
            ready: number;
            /** @description Being made already, for whomever. */
            inProgress: number;
            /** @description Made for this programme, those that failed before included. */
            toBake: number;
            /** @description Until all is ready; nine of ten are by the latest. Null where too little has been baked to tell. */
            estimate: {
                likelySeconds: number;
                latestSeconds: number;
            } | null;
            /** @description Why it cannot be published, item by item; empty where it can. */
            problems: {
                path: string;
                message: string;
                code?: string;
            }[];
        };
        Render: {
            /** Format: uuid */
            id: string;
            /** Format: uuid */
            exerciseId: string;
            exerciseName: string;
            /** @description Names exercise, language and dose; the job in the queue is called so too. */
            recipeHash: string;
            language: string;
            /** @enum {string} */
            status: "pending" | "rendering" | "transcoding" | "ready" | "failed";
            /** @description The items of this programme that play it. */
            itemIds: string[];
            /** @description While it is rendering. */
            progress: {
                stage: string;
                percent: number;
            } | null;
            generation: number;
            attempts: number;
            maxAttempts: number;
            /** @description Why it failed, or why the last attempt did. */
            error: {
                code: string;
                sentence: string;
            } | null;
            warnings: {
                code: string;
                sentence: string;
            }[];
            durationMs: number | null;
            /** @description Of the composed MP4. Once it is ready. */
            masterSha256: string | null;
            /** @description Once it is ready. */
            hlsUrl: string | null;
            /** @description Once it is ready. */
            manifestUrl: string | null;
            /** Format: date-time */
            updatedAt: string;
            /** Format: date-time */
            readyAt: string | null;
        };
        /** @description Watch it further among the renders of the programme. */
        RenderState: {
            /** Format: uuid */
            id: string;
            /** @enum {string} */
            status: "pending" | "rendering" | "transcoding" | "ready" | "failed";
            generation: number;
        };
        Assignment: {
            /** Format: uuid */
            programId: string;
            patientId: string;
            notifyWhenReady: boolean;
            /** Format: date-time */
            createdAt: string;
        };
        AssignedProgram: {
            /** Format: uuid */
            id: string;
            title: string;
            language: string;
            /** Format: date-time */
            publishedAt: string | null;
            /** Format: date-time */
            assignedAt: string;
            sessions: {
                /** Format: uuid */
                id: string;
                title: string;
            }[];
            readiness: components["schemas"]["Readiness"];
        };
        Readiness: {
            /**
             * @description `ready` only when every item plays; `failed` as soon as one cannot be made.
             * @enum {string}
             */
            status: "preparing" | "ready" | "failed";
            total: number;
            ready: number;
            /** @description How many items from the first on already play. */
            readyThrough: number;
            failed: {
                /** Format: uuid */
                itemId: string;
                /** Format: uuid */
                renderId: string | null;
                code: string;
                /** @description For the clinic. */
                sentence: string;
                /** @description For the patient, who can do nothing about it. */
                patientSentence: string;
            }[];
        };
        ProgramReadiness: components["schemas"]["Readiness"] & {
            /** @description While it is preparing: when all will likely be ready, and by when nine of ten are, by what bakes took lately and who is before them. Told in steps, coarser the further away. Null where too little has been baked to tell. */
            eta: {
                /** Format: date-time */
                likely: string;
                /** Format: date-time */
                latest: string;
            } | null;
        };
        Notification: {
            /** Format: uuid */
            id: string;
            /** @description `exercise.render_failed`, `program.ready` or `webhook_endpoint.disabled`; there may be more. */
            kind: string;
            /** @description Of a failed render `renderId`, `exerciseId`, `code` and `message`; of a ready programme `programId` and `title`; of an endpoint `endpointId`, `url` and `reason`. */
            payload: {
                [key: string]: unknown;
            };
            /** Format: date-time */
            createdAt: string;
            /** Format: date-time */
            readAt: string | null;
        };
        PlayableSession: {
            /** Format: uuid */
            sessionId: string;
            /** Format: uuid */
            programId: string | null;
            title: string;
            /** @enum {string} */
            status: "preparing" | "ready" | "failed";
            items: (components["schemas"]["PlayingItem"] | components["schemas"]["WaitingItem"])[];
        };
        PlayingItem: {
            /** @description Counted from 0. */
            position: number;
            exerciseName: string;
            /** @enum {string} */
            status: "ready";
            /** Format: uuid */
            itemId: string;
            /** Format: uuid */
            exerciseId: string;
            dose: {
                /** @default 3 */
                sets?: number;
                /** @default 10 */
                reps?: number;
                /**
                 * @default {
                 *       "out": null,
                 *       "hold": null,
                 *       "back": null,
                 *       "pause": null
                 *     }
                 */
                tempo?: {
                    /** @default null */
                    out?: number | null;
                    /** @default null */
                    hold?: number | null;
                    /** @default null */
                    back?: number | null;
                    /** @default null */
                    pause?: number | null;
                };
                /** @default 30 */
                restSeconds?: number;
                /**
                 * @default none
                 * @enum {string}
                 */
                sides?: "none" | "left-right" | "alternating";
                /** @default 5 */
                leadInSeconds?: number;
                /**
                 * @default voice
                 * @enum {string}
                 */
                cues?: "voice" | "beeps" | "none";
                /** @default -16 */
                loudness?: number;
            };
            durationMs: number | null;
            /** @description Signed and expiring where the pull zone asks for it: fetch it anew. */
            hlsUrl: string;
            manifestUrl: string;
            captionsUrl: string | null;
            posterUrl: string | null;
            baselines: {
                name: string;
                width: number;
                height: number;
                url: string;
                sha256: string;
                bytes: number;
            }[];
        };
        /** @description Nothing of it can be played yet, so nothing of it is told. */
        WaitingItem: {
            /** @description Counted from 0. */
            position: number;
            exerciseName: string;
            /** @enum {string} */
            status: "pending" | "rendering" | "transcoding" | "failed";
        };
        Run: {
            /** Format: uuid */
            id: string;
            /** Format: uuid */
            sessionId: string;
            /** Format: date-time */
            startedAt: string;
        };
        WebhookEndpointWithSecret: components["schemas"]["WebhookEndpoint"] & {
            /** @description What signatures are verified with; shown this once. Null in a repetition by `Idempotency-Key`: rotate to get another. */
            secret: string | null;
        };
        WebhookEndpoint: {
            /** Format: uuid */
            id: string;
            /** Format: uuid */
            orgId: string;
            url: string;
            description: string | null;
            events: ("exercise.render_ready" | "exercise.render_failed" | "program.ready")[];
            enabled: boolean;
            /**
             * @description `gone`: it answered 410. `failing`: every attempt failed for days. Null where it was done by hand.
             * @enum {string|null}
             */
            disabledReason: "gone" | "failing" | null;
            /**
             * Format: date-time
             * @description Since when every attempt has failed.
             */
            failingSince: string | null;
            createdBy: string;
            /** Format: date-time */
            createdAt: string;
            /** Format: date-time */
            updatedAt: string;
        };
        WebhookDeliveryLog: components["schemas"]["WebhookDelivery"] & {
            /** @description The newest twenty, newest first. */
            attempts: {
                /** Format: date-time */
                at: string;
                /** @description What the receiver answered; null where it did not. */
                status: number | null;
                /** @description Why it counts as failed; null for a success. */
                errorCode: string | null;
                durationMs: number;
            }[];
        };
        WebhookDelivery: {
            /**
             * Format: uuid
             * @description The `webhook-id`, the same at every attempt.
             */
            id: string;
            /** @enum {string} */
            type: "exercise.render_ready" | "exercise.render_failed" | "program.ready" | "webhook.test";
            /** @description As in the body that is sent. */
            data: {
                [key: string]: unknown;
            };
            /** @enum {string} */
            state: "pending" | "delivered" | "failed";
            /** Format: date-time */
            createdAt: string;
            /** Format: date-time */
            endedAt: string | null;
            /**
             * Format: date-time
             * @description When it is tried (again) at the earliest; null where it has ended.
             */
            nextTryAt: string | null;
        };
        ProcessReadiness: {
            /** @enum {string} */
            status: "ready" | "degraded" | "unavailable" | "draining";
            /** @enum {string} */
            postgres: "up" | "down";
            /** @enum {string} */
            redis: "up" | "down";
        };
    };
    responses: {
        /** @description `malformed_body`: The body cannot be read. */
        MalformedBody: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "malformed_body";
                };
            };
        };
        /** @description `unauthorized`: A valid credential is needed. */
        Unauthorized: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "unauthorized";
                };
            };
        };
        /** @description `forbidden`: Your role may not do this. */
        Forbidden: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "forbidden";
                };
            };
        };
        /** @description `idempotency_under_way`: A request with this Idempotency-Key is under way. `idempotency_unknown`: The server was interrupted while it did this; it may have been done. Look whether it was, and send it again with a new key. */
        IdempotencyUnderWayOrIdempotencyUnknown: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "idempotency_under_way" | "idempotency_unknown";
                };
            };
        };
        /** @description `payload_too_large`: The body is larger than allowed. */
        PayloadTooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "payload_too_large";
                };
            };
        };
        /** @description `unsupported_media_type`: The body is of a type that is not taken here. */
        UnsupportedMediaType: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "unsupported_media_type";
                };
            };
        };
        /** @description `idempotency_key_reused`: This Idempotency-Key was used for another request. `invalid_request`: The request is not valid. */
        IdempotencyKeyReusedOrInvalidRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "idempotency_key_reused" | "invalid_request";
                };
            };
        };
        /** @description `too_many_requests`: Too many requests at once; try again later. */
        TooManyRequests: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "too_many_requests";
                };
            };
        };
        /** @description `internal`: Something went wrong on our side. */
        Internal: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "internal";
                };
            };
        };
        /** @description `unavailable`: A service that is needed for this cannot be reached. */
        Unavailable: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "unavailable";
                };
            };
        };
        /** @description `invalid_request`: The request is not valid. */
        InvalidRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "invalid_request";
                };
            };
        };
        /** @description `not_found`: There is no such thing. */
        NotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "not_found";
                };
            };
        };
        /** @description `payload_too_large`: The body is larger than allowed. `source_too_large`: The file is larger than allowed. */
        PayloadTooLargeOrSourceTooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "payload_too_large" | "source_too_large";
                };
            };
        };
        /** @description `invalid_request`: The request is not valid. `source_no_audio`: The file holds no sound. `source_no_video`: The file holds no video. `source_too_long`: The source video is too long. `source_too_short`: The source video is too short. `source_undecodable`: The source video cannot be decoded. */
        InvalidRequestOrSourceNoAudioOrSourceNoVideoOrSourceTooLongOrSourceTooShortOrSourceUndecodable: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "invalid_request" | "source_no_audio" | "source_no_video" | "source_too_long" | "source_too_short" | "source_undecodable";
                };
            };
        };
        /** @description `media_busy`: All bakers are busy. `too_many_requests`: Too many requests at once; try again later. */
        MediaBusyOrTooManyRequests: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "media_busy" | "too_many_requests";
                };
            };
        };
        /** @description `aborted`: The work was stopped. */
        Aborted: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "aborted";
                };
            };
        };
        /** @description `ffmpeg_failed`: The video could not be composed. `ffmpeg_silent`: The video composer stopped making progress. `ffmpeg_timeout`: Composing the video took too long. `internal`: Something went wrong on our side. */
        FfmpegFailedOrFfmpegSilentOrFfmpegTimeoutOrInternal: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "ffmpeg_failed" | "ffmpeg_silent" | "ffmpeg_timeout" | "internal";
                };
            };
        };
        /** @description `bunny_unauthorized`: The video platform refused our credentials. `media_protocol`: The media service answered in an unexpected way. `media_unavailable`: The connection to the media service broke. `media_unreachable`: The media service could not be reached. `storage_failed`: The video could not be stored. */
        BunnyUnauthorizedOrMediaProtocolOrMediaUnavailableOrMediaUnreachableOrStorageFailed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "bunny_unauthorized" | "media_protocol" | "media_unavailable" | "media_unreachable" | "storage_failed";
                };
            };
        };
        /** @description `media_draining`: The media service is shutting down. `unavailable`: A service that is needed for this cannot be reached. */
        MediaDrainingOrUnavailable: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "media_draining" | "unavailable";
                };
            };
        };
        /** @description `media_silent`: The media service stopped answering. */
        MediaSilent: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "media_silent";
                };
            };
        };
        /** @description `already_published`: What is published can no longer be edited. */
        AlreadyPublished: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "already_published";
                };
            };
        };
        /** @description `already_published`: What is published can no longer be edited. `idempotency_under_way`: A request with this Idempotency-Key is under way. `idempotency_unknown`: The server was interrupted while it did this; it may have been done. Look whether it was, and send it again with a new key. `not_published`: This is not published. */
        AlreadyPublishedOrIdempotencyUnderWayOrIdempotencyUnknownOrNotPublished: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "already_published" | "idempotency_under_way" | "idempotency_unknown" | "not_published";
                };
            };
        };
        /** @description `conflict`: This does not fit the current state. `idempotency_under_way`: A request with this Idempotency-Key is under way. `idempotency_unknown`: The server was interrupted while it did this; it may have been done. Look whether it was, and send it again with a new key. */
        ConflictOrIdempotencyUnderWayOrIdempotencyUnknown: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "conflict" | "idempotency_under_way" | "idempotency_unknown";
                };
            };
        };
        /** @description `idempotency_key_reused`: This Idempotency-Key was used for another request. `invalid_request`: The request is not valid. `not_publishable`: The programme cannot be published as it is. */
        IdempotencyKeyReusedOrInvalidRequestOrNotPublishable: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "idempotency_key_reused" | "invalid_request" | "not_publishable";
                };
            };
        };
        /** @description `conflict`: This does not fit the current state. */
        Conflict: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "conflict";
                };
            };
        };
        /** @description `idempotency_under_way`: A request with this Idempotency-Key is under way. `idempotency_unknown`: The server was interrupted while it did this; it may have been done. Look whether it was, and send it again with a new key. `render_ready`: This video is ready. `render_under_way`: This video is being made already. */
        IdempotencyUnderWayOrIdempotencyUnknownOrRenderReadyOrRenderUnderWay: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "idempotency_under_way" | "idempotency_unknown" | "render_ready" | "render_under_way";
                };
            };
        };
        /** @description `idempotency_under_way`: A request with this Idempotency-Key is under way. `idempotency_unknown`: The server was interrupted while it did this; it may have been done. Look whether it was, and send it again with a new key. `render_ended`: This video is not being made any more. `render_shared`: Somebody else needs this video, too. */
        IdempotencyUnderWayOrIdempotencyUnknownOrRenderEndedOrRenderShared: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "idempotency_under_way" | "idempotency_unknown" | "render_ended" | "render_shared";
                };
            };
        };
        /** @description `idempotency_under_way`: A request with this Idempotency-Key is under way. `idempotency_unknown`: The server was interrupted while it did this; it may have been done. Look whether it was, and send it again with a new key. `session_failed`: A video of this session could not be made. `session_preparing`: This session is still being prepared. */
        IdempotencyUnderWayOrIdempotencyUnknownOrSessionFailedOrSessionPreparing: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "idempotency_under_way" | "idempotency_unknown" | "session_failed" | "session_preparing";
                };
            };
        };
        /** @description `endpoint_unresolved`: The name of the host is not known. `endpoint_url_refused`: Webhooks are not sent to this address. `idempotency_key_reused`: This Idempotency-Key was used for another request. `invalid_request`: The request is not valid. */
        EndpointUnresolvedOrEndpointUrlRefusedOrIdempotencyKeyReusedOrInvalidRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "endpoint_unresolved" | "endpoint_url_refused" | "idempotency_key_reused" | "invalid_request";
                };
            };
        };
        /** @description `webhooks_off`: This installation sends no webhooks. */
        WebhooksOff: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "webhooks_off";
                };
            };
        };
        /** @description `endpoint_unresolved`: The name of the host is not known. `endpoint_url_refused`: Webhooks are not sent to this address. `invalid_request`: The request is not valid. */
        EndpointUnresolvedOrEndpointUrlRefusedOrInvalidRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"] & {
                    /** @enum {string} */
                    code?: "endpoint_unresolved" | "endpoint_url_refused" | "invalid_request";
                };
            };
        };
    };
    parameters: {
        /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
        IdempotencyKey: string;
        /** @description The `ETag` that you know, or several. */
        IfNoneMatch: string;
    };
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    listExercises: {
        parameters: {
            query?: {
                /** @description How many to answer at most. */
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of exercises. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Exercise"][];
                        /**
                         * Format: uuid
                         * @description Ask for the next page with it; null on the last one.
                         */
                        nextCursor: string | null;
                    };
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    createExercise: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Name by BCP 47 language tag. */
                    names: {
                        [key: string]: string;
                    };
                    /**
                     * @description Where the repetition starts, turns and ends in the source, in milliseconds. What is left out is found from the source.
                     * @default {}
                     */
                    repMarks?: {
                        startMs?: number;
                        turnMs?: number;
                        endMs?: number;
                    };
                    /** @enum {string} */
                    tier?: "platform" | "org";
                };
            };
        };
        responses: {
            /** @description Made. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExerciseDetail"];
                };
            };
            400: components["responses"]["MalformedBody"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["IdempotencyUnderWayOrIdempotencyUnknown"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["IdempotencyKeyReusedOrInvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getExercise: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The exercise. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExerciseDetail"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateExercise: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Name by BCP 47 language tag. */
                    names?: {
                        [key: string]: string;
                    };
                    /** @description Where the repetition starts, turns and ends in the source, in milliseconds. What is left out is found from the source. */
                    repMarks?: {
                        startMs?: number;
                        turnMs?: number;
                        endMs?: number;
                    };
                };
            };
        };
        responses: {
            /** @description As it is now. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExerciseDetail"];
                };
            };
            400: components["responses"]["MalformedBody"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    uploadSource: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/octet-stream": Blob;
            };
        };
        responses: {
            /** @description Kept. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UploadReport"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            413: components["responses"]["PayloadTooLargeOrSourceTooLarge"];
            422: components["responses"]["InvalidRequestOrSourceNoAudioOrSourceNoVideoOrSourceTooLongOrSourceTooShortOrSourceUndecodable"];
            429: components["responses"]["MediaBusyOrTooManyRequests"];
            499: components["responses"]["Aborted"];
            500: components["responses"]["FfmpegFailedOrFfmpegSilentOrFfmpegTimeoutOrInternal"];
            502: components["responses"]["BunnyUnauthorizedOrMediaProtocolOrMediaUnavailableOrMediaUnreachableOrStorageFailed"];
            503: components["responses"]["MediaDrainingOrUnavailable"];
            504: components["responses"]["MediaSilent"];
        };
    };
    uploadCue: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                language: string;
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/octet-stream": Blob;
            };
        };
        responses: {
            /** @description Kept. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UploadReport"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            413: components["responses"]["PayloadTooLargeOrSourceTooLarge"];
            422: components["responses"]["InvalidRequestOrSourceNoAudioOrSourceNoVideoOrSourceTooLongOrSourceTooShortOrSourceUndecodable"];
            429: components["responses"]["MediaBusyOrTooManyRequests"];
            499: components["responses"]["Aborted"];
            500: components["responses"]["FfmpegFailedOrFfmpegSilentOrFfmpegTimeoutOrInternal"];
            502: components["responses"]["BunnyUnauthorizedOrMediaProtocolOrMediaUnavailableOrMediaUnreachableOrStorageFailed"];
            503: components["responses"]["MediaDrainingOrUnavailable"];
            504: components["responses"]["MediaSilent"];
        };
    };
    listPrograms: {
        parameters: {
            query?: {
                /** @description How many to answer at most. */
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of programmes. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Program"][];
                        /**
                         * Format: uuid
                         * @description Ask for the next page with it; null on the last one.
                         */
                        nextCursor: string | null;
                    };
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    createProgram: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    title: string;
                    language: string;
                    /**
                     * Format: uuid
                     * @description For a superadmin, who belongs to no organisation.
                     */
                    orgId?: string;
                    /**
                     * @description In order.
                     * @default []
                     */
                    sessions?: {
                        /** @description Left out: “Session 1”, “Session 2”, … */
                        title?: string;
                        /** @description In order. What a dose leaves out has a default. */
                        items: {
                            /** Format: uuid */
                            exerciseId: string;
                            /** @default {} */
                            dose?: {
                                /** @default 3 */
                                sets?: number;
                                /** @default 10 */
                                reps?: number;
                                /**
                                 * @default {
                                 *       "out": null,
                                 *       "hold": null,
                                 *       "back": null,
                                 *       "pause": null
                                 *     }
                                 */
                                tempo?: {
                                    /** @default null */
                                    out?: number | null;
                                    /** @default null */
                                    hold?: number | null;
                                    /** @default null */
                                    back?: number | null;
                                    /** @default null */
                                    pause?: number | null;
                                };
                                /** @default 30 */
                                restSeconds?: number;
                                /**
                                 * @default none
                                 * @enum {string}
                                 */
                                sides?: "none" | "left-right" | "alternating";
                                /** @default 5 */
                                leadInSeconds?: number;
                                /**
                                 * @default voice
                                 * @enum {string}
                                 */
                                cues?: "voice" | "beeps" | "none";
                                /** @default -16 */
                                loudness?: number;
                            };
                        }[];
                    }[];
                };
            };
        };
        responses: {
            /** @description Made. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProgramDetail"];
                };
            };
            400: components["responses"]["MalformedBody"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["IdempotencyUnderWayOrIdempotencyUnknown"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["IdempotencyKeyReusedOrInvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getProgram: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The programme. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProgramDetail"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateProgram: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    title?: string;
                    language?: string;
                    /** @description In order. */
                    sessions?: {
                        /** @description Left out: “Session 1”, “Session 2”, … */
                        title?: string;
                        /** @description In order. What a dose leaves out has a default. */
                        items: {
                            /** Format: uuid */
                            exerciseId: string;
                            /** @default {} */
                            dose?: {
                                /** @default 3 */
                                sets?: number;
                                /** @default 10 */
                                reps?: number;
                                /**
                                 * @default {
                                 *       "out": null,
                                 *       "hold": null,
                                 *       "back": null,
                                 *       "pause": null
                                 *     }
                                 */
                                tempo?: {
                                    /** @default null */
                                    out?: number | null;
                                    /** @default null */
                                    hold?: number | null;
                                    /** @default null */
                                    back?: number | null;
                                    /** @default null */
                                    pause?: number | null;
                                };
                                /** @default 30 */
                                restSeconds?: number;
                                /**
                                 * @default none
                                 * @enum {string}
                                 */
                                sides?: "none" | "left-right" | "alternating";
                                /** @default 5 */
                                leadInSeconds?: number;
                                /**
                                 * @default voice
                                 * @enum {string}
                                 */
                                cues?: "voice" | "beeps" | "none";
                                /** @default -16 */
                                loudness?: number;
                            };
                        }[];
                    }[];
                };
            };
        };
        responses: {
            /** @description As it is now. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProgramDetail"];
                };
            };
            400: components["responses"]["MalformedBody"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["AlreadyPublished"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    archiveProgram: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Archived. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProgramDetail"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["IdempotencyUnderWayOrIdempotencyUnknown"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["IdempotencyKeyReusedOrInvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    copyProgram: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Left out: as the original’s. */
                    title?: string;
                };
            };
        };
        responses: {
            /** @description The new draft. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProgramDetail"];
                };
            };
            400: components["responses"]["MalformedBody"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["IdempotencyUnderWayOrIdempotencyUnknown"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["IdempotencyKeyReusedOrInvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    attachSession: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** Format: uuid */
                    sessionId: string;
                };
            };
        };
        responses: {
            /** @description The programme with the copy in it. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProgramDetail"];
                };
            };
            400: components["responses"]["MalformedBody"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["AlreadyPublishedOrIdempotencyUnderWayOrIdempotencyUnknownOrNotPublished"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["IdempotencyKeyReusedOrInvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listSessions: {
        parameters: {
            query?: {
                /** @description How many to answer at most. */
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of sessions. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Session"][];
                        /**
                         * Format: uuid
                         * @description Ask for the next page with it; null on the last one.
                         */
                        nextCursor: string | null;
                    };
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    createSession: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    title: string;
                    language: string;
                    /**
                     * Format: uuid
                     * @description For a superadmin, who belongs to no organisation.
                     */
                    orgId?: string;
                    /**
                     * @description In order. What a dose leaves out has a default.
                     * @default []
                     */
                    items?: {
                        /** Format: uuid */
                        exerciseId: string;
                        /** @default {} */
                        dose?: {
                            /** @default 3 */
                            sets?: number;
                            /** @default 10 */
                            reps?: number;
                            /**
                             * @default {
                             *       "out": null,
                             *       "hold": null,
                             *       "back": null,
                             *       "pause": null
                             *     }
                             */
                            tempo?: {
                                /** @default null */
                                out?: number | null;
                                /** @default null */
                                hold?: number | null;
                                /** @default null */
                                back?: number | null;
                                /** @default null */
                                pause?: number | null;
                            };
                            /** @default 30 */
                            restSeconds?: number;
                            /**
                             * @default none
                             * @enum {string}
                             */
                            sides?: "none" | "left-right" | "alternating";
                            /** @default 5 */
                            leadInSeconds?: number;
                            /**
                             * @default voice
                             * @enum {string}
                             */
                            cues?: "voice" | "beeps" | "none";
                            /** @default -16 */
                            loudness?: number;
                        };
                    }[];
                };
            };
        };
        responses: {
            /** @description Made. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionDetail"];
                };
            };
            400: components["responses"]["MalformedBody"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["IdempotencyUnderWayOrIdempotencyUnknown"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["IdempotencyKeyReusedOrInvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionDetail"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    updateSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    title?: string;
                    language?: string;
                    /** @description In order. What a dose leaves out has a default. */
                    items?: {
                        /** Format: uuid */
                        exerciseId: string;
                        /** @default {} */
                        dose?: {
                            /** @default 3 */
                            sets?: number;
                            /** @default 10 */
                            reps?: number;
                            /**
                             * @default {
                             *       "out": null,
                             *       "hold": null,
                             *       "back": null,
                             *       "pause": null
                             *     }
                             */
                            tempo?: {
                                /** @default null */
                                out?: number | null;
                                /** @default null */
                                hold?: number | null;
                                /** @default null */
                                back?: number | null;
                                /** @default null */
                                pause?: number | null;
                            };
                            /** @default 30 */
                            restSeconds?: number;
                            /**
                             * @default none
                             * @enum {string}
                             */
                            sides?: "none" | "left-right" | "alternating";
                            /** @default 5 */
                            leadInSeconds?: number;
                            /**
                             * @default voice
                             * @enum {string}
                             */
                            cues?: "voice" | "beeps" | "none";
                            /** @default -16 */
                            loudness?: number;
                        };
                    }[];
                };
            };
        };
        responses: {
            /** @description As it is now. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionDetail"];
                };
            };
            400: components["responses"]["MalformedBody"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["AlreadyPublished"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    archiveSession: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Archived. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionDetail"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["IdempotencyUnderWayOrIdempotencyUnknown"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["IdempotencyKeyReusedOrInvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    publishProgram: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PublishCounts"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["ConflictOrIdempotencyUnderWayOrIdempotencyUnknown"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["IdempotencyKeyReusedOrInvalidRequestOrNotPublishable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    previewPublish: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description As it is now. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PublishPreview"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    publishSession: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PublishCounts"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["ConflictOrIdempotencyUnderWayOrIdempotencyUnknown"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["IdempotencyKeyReusedOrInvalidRequestOrNotPublishable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listProgramRenders: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description In playing order; empty before publish. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Render"][];
                    };
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    retryRender: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @default false */
                    force?: boolean;
                };
            };
        };
        responses: {
            /** @description It is queued. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RenderState"];
                };
            };
            400: components["responses"]["MalformedBody"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["IdempotencyUnderWayOrIdempotencyUnknownOrRenderReadyOrRenderUnderWay"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["IdempotencyKeyReusedOrInvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    cancelRender: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Given up. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RenderState"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["IdempotencyUnderWayOrIdempotencyUnknownOrRenderEndedOrRenderShared"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["IdempotencyKeyReusedOrInvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    assignProgram: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description The `sub` of the patient’s token. */
                    patientId: string;
                    /** @default false */
                    notifyWhenReady?: boolean;
                };
            };
        };
        responses: {
            /** @description Was assigned already; `notifyWhenReady` is as given now. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Assignment"];
                };
            };
            /** @description Assigned. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Assignment"];
                };
            };
            400: components["responses"]["MalformedBody"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["ConflictOrIdempotencyUnderWayOrIdempotencyUnknown"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["IdempotencyKeyReusedOrInvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    unassignProgram: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                /** @description The `sub` of the patient’s token. */
                patientId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Taken back. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listMyPrograms: {
        parameters: {
            query?: {
                /** @description How many to answer at most. */
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of programmes. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["AssignedProgram"][];
                        /**
                         * Format: uuid
                         * @description Ask for the next page with it; null on the last one.
                         */
                        nextCursor: string | null;
                    };
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    getReadiness: {
        parameters: {
            query?: {
                /** @description Seconds. */
                wait?: number | null;
            };
            header?: {
                /** @description The `ETag` that you know, or several. */
                "If-None-Match"?: components["parameters"]["IfNoneMatch"];
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Readiness, with its `ETag`. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProgramReadiness"];
                    "text/event-stream": string;
                };
            };
            /** @description As you know it. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listNotifications: {
        parameters: {
            query?: {
                /** @description How many to answer at most. */
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
                /** @description Only what has not been read. */
                unread?: "true" | "false";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of notifications. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Notification"][];
                        /**
                         * Format: uuid
                         * @description Ask for the next page with it; null on the last one.
                         */
                        nextCursor: string | null;
                    };
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    readNotification: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Noted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["IdempotencyUnderWayOrIdempotencyUnknown"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["IdempotencyKeyReusedOrInvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    playSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlayableSession"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    startRun: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Begun. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["IdempotencyUnderWayOrIdempotencyUnknownOrSessionFailedOrSessionPreparing"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["IdempotencyKeyReusedOrInvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    listWebhookEndpoints: {
        parameters: {
            query?: {
                /** @description How many to answer at most. */
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of endpoints. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["WebhookEndpoint"][];
                        /**
                         * Format: uuid
                         * @description Ask for the next page with it; null on the last one.
                         */
                        nextCursor: string | null;
                    };
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    createWebhookEndpoint: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description https:// on the public Internet, without name and password. */
                    url: string;
                    /** @description Which events are sent there. */
                    events: ("exercise.render_ready" | "exercise.render_failed" | "program.ready")[];
                    description?: string;
                    /**
                     * Format: uuid
                     * @description For a superadmin, who belongs to no organisation.
                     */
                    orgId?: string;
                };
            };
        };
        responses: {
            /** @description Made. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookEndpointWithSecret"];
                };
            };
            400: components["responses"]["MalformedBody"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            409: components["responses"]["ConflictOrIdempotencyUnderWayOrIdempotencyUnknown"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["EndpointUnresolvedOrEndpointUrlRefusedOrIdempotencyKeyReusedOrInvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            501: components["responses"]["WebhooksOff"];
            503: components["responses"]["Unavailable"];
        };
    };
    getWebhookEndpoint: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The endpoint. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookEndpoint"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    deleteWebhookEndpoint: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    changeWebhookEndpoint: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description https:// on the public Internet, without name and password. */
                    url?: string;
                    /** @description Which events are sent there. */
                    events?: ("exercise.render_ready" | "exercise.render_failed" | "program.ready")[];
                    description?: string | null;
                    enabled?: boolean;
                };
            };
        };
        responses: {
            /** @description As it is now. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookEndpoint"];
                };
            };
            400: components["responses"]["MalformedBody"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["EndpointUnresolvedOrEndpointUrlRefusedOrInvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    rotateWebhookSecret: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The new secret. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookEndpointWithSecret"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["IdempotencyUnderWayOrIdempotencyUnknown"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["IdempotencyKeyReusedOrInvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            501: components["responses"]["WebhooksOff"];
            503: components["responses"]["Unavailable"];
        };
    };
    listWebhookDeliveries: {
        parameters: {
            query?: {
                /** @description How many to answer at most. */
                limit?: number;
                /** @description The `nextCursor` of the page before. */
                cursor?: string;
                /** @description Only those. */
                state?: "pending" | "delivered" | "failed";
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of deliveries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["WebhookDeliveryLog"][];
                        /**
                         * Format: uuid
                         * @description Ask for the next page with it; null on the last one.
                         */
                        nextCursor: string | null;
                    };
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            422: components["responses"]["InvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    replayWebhookDelivery: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                id: string;
                /** @description One of its deliveries. */
                deliveryId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description To be sent. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDelivery"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["ConflictOrIdempotencyUnderWayOrIdempotencyUnknown"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["IdempotencyKeyReusedOrInvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    testWebhookEndpoint: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any name of this request that the caller makes up. The same request with the same key is done once and answered again for a day; another request with it, or the same in another role, is refused. What was refused may be tried again with the same key. What the server was interrupted over is never done again with it: `idempotency_unknown`. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description To be sent. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDelivery"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["ConflictOrIdempotencyUnderWayOrIdempotencyUnknown"];
            413: components["responses"]["PayloadTooLarge"];
            422: components["responses"]["IdempotencyKeyReusedOrInvalidRequest"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["Internal"];
            503: components["responses"]["Unavailable"];
        };
    };
    receiveBunnyWebhook: {
        parameters: {
            query?: {
                /** @description The shared secret, where it is not signed. */
                token?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description Stored. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** Format: uuid */
                        id: string;
                    };
                };
            };
            /** @description `malformed_body`: The body cannot be read. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"] & {
                        /** @enum {string} */
                        code?: "malformed_body";
                    };
                };
            };
            /** @description `unauthorized`: A valid credential is needed. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"] & {
                        /** @enum {string} */
                        code?: "unauthorized";
                    };
                };
            };
            /** @description `payload_too_large`: The body is larger than allowed. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"] & {
                        /** @enum {string} */
                        code?: "payload_too_large";
                    };
                };
            };
            /** @description `internal`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"] & {
                        /** @enum {string} */
                        code?: "internal";
                    };
                };
            };
            /** @description `unavailable`: A service that is needed for this cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"] & {
                        /** @enum {string} */
                        code?: "unavailable";
                    };
                };
            };
        };
    };
    checkHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {string} */
                        status: "ok";
                    };
                };
            };
            /** @description `internal`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"] & {
                        /** @enum {string} */
                        code?: "internal";
                    };
                };
            };
        };
    };
    checkReadiness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description `ready` or `degraded`. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProcessReadiness"];
                };
            };
            /** @description `internal`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"] & {
                        /** @enum {string} */
                        code?: "internal";
                    };
                };
            };
            /** @description `unavailable` or `draining`. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProcessReadiness"];
                };
            };
        };
    };
}
