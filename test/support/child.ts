/**
 * A command as it runs without tap, which loads itself into every Node.js that a test starts (by NODE_OPTIONS): its
 * signal handlers change what a process outlives, SIGXFSZ among others, and loading it takes as long as we do.
 */
export const untouched = (command: string, args: readonly string[]): [string, string[]] => [
  'env',
  ['-u', 'NODE_OPTIONS', command, ...args],
]
