/** An expected reason not to start. The message is one sentence. */
export class StartRefused extends Error {
  override readonly name = 'StartRefused'
}

/** Exit status of a process that refuses to start. A retry would not help, so the supervisor gives up at once. */
export const EXIT_REFUSED = 78
