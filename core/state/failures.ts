/** SQLite's codes for what is over when somebody lets go of a lock or makes room: the same write is right then. */
const PASSING = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|CANTOPEN|PROTOCOL|NOMEM)/

/** Whether the state could not take a write at this moment, and the write itself is not at fault. */
export const isPassing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' && PASSING.test(error.code)
