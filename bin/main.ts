import { Command } from 'commander'
import { auditCommand } from './audit.ts'
import { backupCommand, restoreCommand } from './backup.ts'
import { bootstrapCommand } from './bootstrap.ts'
import { callCommand } from './call.ts'
import { carriersCommand } from './carriers.ts'
import { containmentsCommand } from './containments.ts'
import { doctorCommand } from './doctor.ts'
import { drainCommand } from './drain.ts'
import { ladderCommand } from './ladder.ts'
import { limitsCommand } from './limits.ts'
import { rateCommand } from './rate.ts'
import { ratesCommand } from './rates.ts'
import { replayCommand } from './replay.ts'
import { scriptCommand } from './script.ts'
import { testCommand } from './test.ts'
import { topCommand } from './top.ts'
import { upCommand } from './up.ts'

const COMMANDS = [
  upCommand,
  drainCommand,
  bootstrapCommand,
  doctorCommand,
  callCommand,
  topCommand,
  ladderCommand,
  testCommand,
  replayCommand,
  scriptCommand,
  carriersCommand,
  ratesCommand,
  rateCommand,
  limitsCommand,
  containmentsCommand,
  auditCommand,
  backupCommand,
  restoreCommand,
]

const program = new Command('strowger')
  .description('Self-hosted SIP trunking and programmable voice')
  .showHelpAfterError()

for (const command of COMMANDS) program.addCommand(command())

await program.parseAsync()
