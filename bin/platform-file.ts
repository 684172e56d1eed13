import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { localUrl, type Settings, VARIABLES } from '../core/runtime/config.ts'
import { TREE } from '../core/runtime/tree.ts'
import type { Environment } from '../core/runtime/variables.ts'
import { readIfThere, runningSupervisor, writeWhole } from './pid-file.ts'

/** What a running platform says of itself in `DATA/run/platform.json`. It holds no secret. */
export interface PlatformFile {
  /** The supervisor. */
  readonly pid: number
  readonly version: string
  readonly started_at: string
  /** Address of the HTTP APIs on this machine. `base_url` may lead through a proxy. */
  readonly http: string
  readonly base_url: string
  readonly sip: {
    readonly host: string
    readonly udp: number
    readonly tcp: number
    readonly tls: number
    readonly ws: number
  }
  /** The variables with which it was started, without secrets and without the data folder. */
  readonly settings: Readonly<Record<string, string>>
}

export const platformFile = (run_dir: string): string => join(run_dir, 'platform.json')

/** The addresses of SIP as `bootstrap` prints them. */
export const sipAddresses = ({ host, sip_port, sips_port, ws_port }: Settings): PlatformFile['sip'] => ({
  host,
  udp: sip_port,
  tcp: sip_port,
  tls: sips_port,
  ws: ws_port,
})

/** Writes what the platform of this process is, for the commands that speak to it. */
export function writePlatform(config: Settings, env: Environment, now: string): void {
  const platform: PlatformFile = {
    pid: process.pid,
    version: JSON.parse(readFileSync(join(TREE, 'package.json'), 'utf8')).version,
    started_at: now,
    http: localUrl(config),
    base_url: config.base_url,
    sip: sipAddresses(config),
    settings: given(env),
  }
  writeWhole(platformFile(config.run_dir), `${JSON.stringify(platform, null, 2)}\n`)
}

/** Returns what the platform that runs on a data folder says of itself; null when none runs. */
export function runningPlatform(data_dir: string): PlatformFile | null {
  const run_dir = join(data_dir, 'run')
  const pid = runningSupervisor(run_dir)
  const text = pid === null ? null : readIfThere(platformFile(run_dir))
  if (text === null) return null
  const platform = JSON.parse(text) as PlatformFile
  // A file of another pid was left by a supervisor that was killed.
  return platform.pid === pid ? platform : null
}

/** The variables that a platform and its commands must agree on. Each command reads secrets for itself. */
export const SHARED = Object.values(VARIABLES).filter(one => !one.secret && one !== VARIABLES.data)

const given = (env: Environment): Record<string, string> =>
  Object.fromEntries(
    SHARED.flatMap(({ name }) => {
      const value = env[name]?.trim() ?? ''
      return value === '' ? [] : [[name, value]]
    }),
  )
