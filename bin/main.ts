import { Command } from 'commander'
import { writePrivately } from '../core/runtime/private-files.ts'
import { traceTypeScript } from '../core/runtime/typescript-stacks.ts'
import { orSayWhy } from './say.ts'

/** Commands by name, in the order of the help. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  up: async () => (await import('./up.ts')).upCommand(),
  drain: async () => (await import('./drain.ts')).drainCommand(),
  bootstrap: async () => (await import('./bootstrap.ts')).bootstrapCommand(),
  doctor: async () => (await import('./doctor.ts')).doctorCommand(),
  call: async () => (await import('./call.ts')).callCommand(),
  top: async () => (await import('./top.ts')).topCommand(),
  ladder: async () => (await import('./ladder.ts')).ladderCommand(),
  test: async () => (await import('./test.ts')).testCommand(),
  replay: async () => (await import('./replay.ts')).replayCommand(),
  script: async () => (await import('./script.ts')).scriptCommand(),
  operator: async () => (await import('./customers.ts')).operatorCommand(),
  org: async () => (await import('./customers.ts')).orgCommand(),
  project: async () => (await import('./customers.ts')).projectCommand(),
  balance: async () => (await import('./customers.ts')).balanceCommand(),
  numbers: async () => (await import('./customers.ts')).numbersCommand(),
  carriers: async () => (await import('./carriers.ts')).carriersCommand(),
  rates: async () => (await import('./rates.ts')).ratesCommand(),
  rate: async () => (await import('./rate.ts')).rateCommand(),
  limits: async () => (await import('./limits.ts')).limitsCommand(),
  sources: async () => (await import('./sources.ts')).sourcesCommand(),
  containments: async () => (await import('./containments.ts')).containmentsCommand(),
  audit: async () => (await import('./audit.ts')).auditCommand(),
  backup: async () => (await import('./backup.ts')).backupCommand(),
  restore: async () => (await import('./backup.ts')).restoreCommand(),
}

traceTypeScript()
writePrivately()

const program = new Command('strowger')
  .description('Self-hosted SIP trunking and programmable voice')
  .showHelpAfterError()

// Loads only the requested command: loading the modules of all takes longer than most commands run.
const [, , name = ''] = process.argv
const wanted = Object.hasOwn(COMMANDS, name) ? [name] : Object.keys(COMMANDS)
for (const one of wanted) {
  const command = await COMMANDS[one]?.()
  if (command) program.addCommand(command)
}

await orSayWhy(() => program.parseAsync())
