import type { BackgroundCommand } from './commands/background.ts'
import type { ChildCommand } from './commands/child.ts'
import type { RunCommand } from './commands/run.ts'
import type { SharedCommand } from './commands/shared.ts'
import type { SoundCommand } from './commands/sound.ts'

export type * from './commands/background.ts'
export type * from './commands/child.ts'
export type * from './commands/run.ts'
export type * from './commands/shared.ts'
export type * from './commands/sound.ts'

/** A command from the interpreter to its executor. */
export type Command = RunCommand | SoundCommand | ChildCommand | SharedCommand | BackgroundCommand
