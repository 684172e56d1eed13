import { Command } from 'commander'
import { bootstrapCommand } from './bootstrap.ts'
import { doctorCommand } from './doctor.ts'
import { ladderCommand } from './ladder.ts'
import { replayCommand } from './replay.ts'
import { scriptCommand } from './script.ts'
import { upCommand } from './up.ts'

const program = new Command('strowger')
  .description('Self-hosted SIP trunking and programmable voice')
  .showHelpAfterError()

for (const command of [upCommand, bootstrapCommand, doctorCommand, ladderCommand, scriptCommand, replayCommand])
  program.addCommand(command())

await program.parseAsync()
