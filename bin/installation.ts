import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { type Config, ConfigError, loadConfig, readSettings, type Settings, VARIABLES } from '../core/runtime/config.ts'
import { type SecretOrigin, withSecretFiles } from '../core/runtime/secret-files.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { TREE } from '../core/runtime/tree.ts'
import { unknownVariables } from '../core/runtime/unknown-variables.ts'
import { type Environment, read } from '../core/runtime/variables.ts'
import { namedFolder } from './data-option.ts'
import { type PlatformFile, runningPlatform, SHARED } from './platform-file.ts'
import { WORDING } from './service/wording.ts'
import { complain, terminal } from './terminal.ts'
import { hasState, refuseOtherPlace } from './where-state-is.ts'

const SYSTEM_FOLDER = '/var/lib/strowger'

/** Where an installation may be named: by a person, or by custom. */
type Source = '--data' | 'STROWGER_DATA' | '.env' | 'the checkout' | 'the system'

/** Where the value of a variable comes from. */
type Origin = 'running platform' | 'environment' | '.env' | SecretOrigin | 'default'

/** The installation that a command speaks of (design section 11, "One installation"). */
export interface Installation {
  readonly data_dir: string
  readonly source: Source
  /** The platform that runs on the folder, if any. */
  readonly running: PlatformFile | null
  /** The whole environment: the variables, those of `.env`, and the settings of the running platform before both. */
  readonly env: Environment
  /** What each variable's value comes from. */
  readonly origin: (name: string) => Origin
  /** Variables that have another value here than in the running platform, which counts. */
  readonly outdated: readonly string[]
  /** Other folders on this machine with a state, as far as custom names them. */
  readonly others: readonly string[]
}

interface Given {
  readonly env: Environment
  /** The value of `--data`. */
  readonly option: string | undefined
  /** The checkout, which may have a `.env` and a folder `data`. */
  readonly tree?: string
  readonly system_folder?: string
}

/**
 * Finds the installation. The first that is named counts: `--data`, `STROWGER_DATA`, `STROWGER_DATA` in the checkout's
 * `.env`. Without a name it is the first with a state of `./data` of the checkout and /var/lib/strowger, else `./data`.
 * A relative folder of `.env` begins at the checkout. @throws ConfigError for a variable that nothing reads
 */
export function findInstallation(given: Given): Installation {
  const { env, option, tree = TREE, system_folder = SYSTEM_FOLDER } = given
  const file = dotEnv(join(tree, '.env'))
  const named = (text: string | undefined): string | undefined => text?.trim() || undefined
  const { name } = VARIABLES.data
  const by_custom: readonly (readonly [Source, string])[] = [
    ['the checkout', join(tree, 'data')],
    ['the system', system_folder],
  ]
  const fits: readonly (readonly [Source, string | undefined])[] = [
    ['--data', option],
    ['STROWGER_DATA', named(env[name])],
    ['.env', named(file[name]) && resolve(tree, named(file[name]) ?? '')],
    ...by_custom.filter(([, folder]) => hasState(folder)),
    ...by_custom,
  ]
  const [source, folder = ''] = fits.find(([, folder]) => folder !== undefined) ?? ['the checkout', undefined]
  const data_dir = resolve(folder)
  const running = runningPlatform(data_dir)
  const secrets = withSecretFiles({ ...file, ...env })
  const faults = [...unknownVariables({ ...file, ...env }), ...secrets.faults]
  if (faults.length > 0) throw new ConfigError(faults.join('\n'))
  const own = secrets.env
  const shared = Object.fromEntries(SHARED.map(({ name: shared }) => [shared, running?.settings[shared]]))
  return {
    data_dir,
    source,
    running,
    env: { ...own, ...(running ? shared : {}), [name]: data_dir },
    origin: variable => {
      if (running && variable in shared) return shared[variable] === undefined ? 'default' : 'running platform'
      const from = secrets.origin.get(variable)
      if (from !== undefined) return from
      if (env[variable] !== undefined) return 'environment'
      return file[variable] === undefined ? 'default' : '.env'
    },
    outdated: running
      ? SHARED.map(({ name: known }) => known).filter(
          known => named(own[known]) !== undefined && named(own[known]) !== running.settings[known],
        )
      : [],
    others: [...new Set(fits.flatMap(([, other]) => (other === undefined ? [] : [resolve(other)])))].filter(
      other => other !== data_dir && hasState(other),
    ),
  }
}

/** Reads our variables of a `.env`. Compose reads the same file, so others may stand in it. */
function dotEnv(file: string): Readonly<Record<string, string>> {
  if (!existsSync(file)) return {}
  const all = Object.entries(parseEnv(readFileSync(file, 'utf8')))
  return Object.fromEntries(
    all.flatMap(([name, value]) => (name.startsWith('STROWGER_') && value !== undefined ? [[name, value]] : [])),
  )
}

/** The installation of this run, which may not exist yet: for `up`, `restore` and `doctor`. */
export const thisInstallation = (): Installation => findInstallation({ env: terminal().env, option: namedFolder() })

/** The settings of this run, for commands that need no installation. Touches no file. */
export const theseSettings = (): Settings => readSettings(thisInstallation().env)

/** The configuration of the installation of this run, which must exist. @throws StartRefused */
export function presentConfig(): Config {
  const found = thisInstallation()
  requirePresent(found)
  if (found.others.length > 0) complain(`installation ${found.data_dir} (${TOLD_SOURCES[found.source]})\n`)
  return loadConfig(found.env)
}

/** What a person reads of each source. */
export const TOLD_SOURCES: Readonly<Record<Source, string>> = {
  '--data': 'named by --data',
  STROWGER_DATA: 'named by STROWGER_DATA',
  '.env': 'named by .env',
  'the checkout': 'the folder data of this checkout',
  'the system': "the system's folder",
}

/** Refuses a folder that is no installation, before anything is made in it. @throws StartRefused */
export function requirePresent({ data_dir, source, env }: Installation): void {
  const database_url = read(env, VARIABLES.database_url)
  if (!hasState(data_dir) && database_url === null)
    throw new StartRefused(
      `there is no installation in ${data_dir} (${TOLD_SOURCES[source]}): name its folder with --data or STROWGER_DATA, ` +
        `or make one with ${WORDING.start}`,
    )
  refuseOtherPlace({ data_dir, database_url })
  if ((env[VARIABLES.master_key.name] ?? '') === '' && !existsSync(join(data_dir, 'master.key')))
    throw new StartRefused(`${data_dir} has no master.key: set STROWGER_MASTER_KEY to what its platform has`)
}
