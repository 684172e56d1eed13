import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import { TREE } from '../core/runtime/tree.ts'
import { nameFolder } from './data-option.ts'
import { complain, tell, terminal } from './terminal.ts'

/** A command: what the help says of it, and its module, which is loaded when it runs. */
interface Known {
  readonly about: string
  readonly load: () => Promise<Command>
}

/** Commands by name, in the order of the help. */
const COMMANDS: Readonly<Record<string, Known>> = {
  up: {
    about: 'start the platform: edge, signaling, media, control and the sandbox carrier',
    load: async () => (await import('./up.ts')).upCommand(),
  },
  drain: {
    about: 'take no new call, let those that run end by themselves, then stop the platform',
    load: async () => (await import('./drain.ts')).drainCommand(),
  },
  cluster: {
    about: 'the machines that share a database: how they stand, and taking one out of service',
    load: async () => (await import('./cluster.ts')).clusterCommand(),
  },
  status: {
    about: 'the service, its version and its health in one screen; exit code 1 when no calls are taken',
    load: async () => (await import('./status.ts')).statusCommand(),
  },
  install: {
    about: 'install the release that was unpacked here as a service of systemd',
    load: async () => (await import('./install.ts')).installCommand(),
  },
  uninstall: {
    about: 'stop the service and remove it from the machine; settings and data stay',
    load: async () => (await import('./install.ts')).uninstallCommand(),
  },
  bootstrap: {
    about: 'make the demo project if it is missing, and print its addresses and credentials with a fresh API key',
    load: async () => (await import('./bootstrap.ts')).bootstrapCommand(),
  },
  doctor: {
    about: 'check the machine and the configuration, and say how to mend them',
    load: async () => (await import('./doctor.ts')).doctorCommand(),
  },
  config: {
    about: 'the configuration as it counts; explain a variable',
    load: async () => (await import('./config.ts')).configCommand(),
  },
  call: {
    about: 'place a call through the running platform and follow it to its end',
    load: async () => (await import('./call.ts')).callCommand(),
  },
  top: {
    about: 'live calls, calls per second, answer ratio and spend, as they are now',
    load: async () => (await import('./top.ts')).topCommand(),
  },
  ladder: {
    about: 'print the SIP messages of a call: all its legs and attempts, in the order of time',
    load: async () => (await import('./ladder.ts')).ladderCommand(),
  },
  tail: {
    about: 'follow the calls of all projects: each that begins, and each change of its status',
    load: async () => (await import('./tail.ts')).tailCommand(),
  },
  test: {
    about: 'test a trunk: configuration, media to its targets, or a call; prints the finding',
    load: async () => (await import('./test.ts')).testCommand(),
  },
  verify: {
    about: 'check the evidence of a call from its file alone: whether anything in it was changed',
    load: async () => (await import('./verify.ts')).verifyCommand(),
  },
  replay: {
    about: 'run the scripts of a finished call again from their logs; exit code 1 at the first difference',
    load: async () => (await import('./replay.ts')).replayCommand(),
  },
  script: {
    about: 'check markup documents, and run them without a telephone',
    load: async () => (await import('./script.ts')).scriptCommand(),
  },
  agent: {
    about: 'talk to a relay application from the terminal',
    load: async () => (await import('./agent.ts')).agentCommand(),
  },
  operator: {
    about: 'keys of operators for /operator/v1',
    load: async () => (await import('./customers.ts')).operatorCommand(),
  },
  org: {
    about: 'organizations, which are the customers',
    load: async () => (await import('./customers.ts')).orgCommand(),
  },
  members: {
    about: 'people of all organizations: lock, unlock, second factors, new passwords',
    load: async () => (await import('./members.ts')).membersCommand(),
  },
  project: {
    about: 'projects of all organizations',
    load: async () => (await import('./customers.ts')).projectCommand(),
  },
  balance: {
    about: 'the money of projects',
    load: async () => (await import('./customers.ts')).balanceCommand(),
  },
  numbers: {
    about: 'the inventory of numbers, and who holds which',
    load: async () => (await import('./customers.ts')).numbersCommand(),
  },
  carriers: {
    about: "the operator's own connections to the telephone network",
    load: async () => (await import('./carriers.ts')).carriersCommand(),
  },
  rates: {
    about: 'price books: what projects pay for calls',
    load: async () => (await import('./rates.ts')).ratesCommand(),
  },
  costs: {
    about: 'cost books: what carriers take for calls',
    load: async () => (await import('./rates.ts')).costsCommand(),
  },
  rate: {
    about: 'explain the price of an ended call',
    load: async () => (await import('./rate.ts')).rateCommand(),
  },
  limits: {
    about: 'number formats, short codes, and who held the slots of ceilings',
    load: async () => (await import('./limits.ts')).limitsCommand(),
  },
  sources: {
    about: 'sources of trunks that wait for approval, or count by name alone',
    load: async () => (await import('./sources.ts')).sourcesCommand(),
  },
  containments: {
    about: 'prefixes that are closed, and requests to open them',
    load: async () => (await import('./containments.ts')).containmentsCommand(),
  },
  export: {
    about: 'write the calls of all customers, or of one, into a file: CSV or JSON Lines',
    load: async () => (await import('./export.ts')).exportCommand(),
  },
  calls: {
    about: 'calls of all projects, or of one, and all that is known of a call',
    load: async () => (await import('./reads.ts')).callsCommand(),
  },
  trunks: {
    about: 'trunks of all projects, or of one',
    load: async () => (await import('./reads.ts')).trunksCommand(),
  },
  alerts: {
    about: 'alerts of all projects, or of one',
    load: async () => (await import('./reads.ts')).alertsCommand(),
  },
  audit: {
    about: 'the audit trail',
    load: async () => (await import('./audit.ts')).auditCommand(),
  },
  backup: {
    about: 'write database, keys and recordings to one archive; the platform may run meanwhile',
    load: async () => (await import('./backup.ts')).backupCommand(),
  },
  upgrade: {
    about: 'rehearse a release on a copy of the data, or put it in the place of the version that runs, with a way back',
    load: async () => (await import('./upgrade.ts')).upgradeCommand(),
  },
  migrate: {
    about: 'bring the schema of the state to this version, as the first machine of several does before the others',
    load: async () => (await import('./migrate.ts')).migrateCommand(),
  },
  restore: {
    about: 'restore a backup into the data folder, which must be empty unless --replace is given',
    load: async () => (await import('./backup.ts')).restoreCommand(),
  },
  completion: {
    about: 'print the completion for a shell: source <(strowger completion)',
    load: async () => (await import('./completion.ts')).completionCommand(),
  },
}

/** Width of the help where a program reads it. */
const HELP_WIDTH = 80

/**
 * Returns the command line for these words. Only the command that they name has its options and parts: loading the
 * modules of all takes longer than most commands run. `completion` has all.
 */
export async function programFor(words: readonly string[]): Promise<Command> {
  const package_file = readFileSync(join(TREE, 'package.json'), 'utf8')
  const { version } = JSON.parse(package_file) as { readonly version: string }
  const program: Command = new Command('strowger')
    .description('Self-hosted SIP trunking and programmable voice')
    .option(
      '--data <folder>',
      'the folder of the installation; else STROWGER_DATA, .env, ./data of the checkout, or /var/lib/strowger',
    )
    .version(version)
    .hook('preAction', command => nameFolder(command.opts<{ data?: string }>().data))
  const [first, second] = operandsOf(words)
  const wanted = first === 'help' ? second : first
  for (const [name, { about, load }] of Object.entries(COMMANDS)) {
    const command = wanted === 'completion' || name === wanted ? await load() : new Command(name)
    program.addCommand(command.description(about))
  }
  surround(program)
  return program
}

/** The words that are no options. `--version` and `--help` do nothing yet. */
const operandsOf = (words: readonly string[]): readonly string[] =>
  new Command()
    .option('--data <folder>')
    .helpOption(false)
    .parseOptions([...words]).operands

/** Commander prints help and faults through the terminal too. */
function surround(command: Command): void {
  const width = () => terminal().columns ?? HELP_WIDTH
  command.showHelpAfterError().configureOutput({
    writeOut: tell,
    writeErr: complain,
    getOutHelpWidth: width,
    getErrHelpWidth: width,
  })
  command.configureHelp({ minWidthToWrap: 20 })
  for (const part of command.commands) surround(part)
}
