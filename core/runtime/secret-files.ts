import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Environment, VARIABLES } from './variables.ts'

/** More than any secret has; a mistaken path may lead to something endless. */
const MAX_BYTES = 64 * 1024
/** The folder in which systemd puts the credentials of a service (systemd.exec(5), LoadCredential=). */
const CREDENTIALS = 'CREDENTIALS_DIRECTORY'

export type SecretOrigin = 'file' | 'credential'

interface WithSecrets {
  /** The environment with the secrets as if they had been given by value, and without the names of their files. */
  readonly env: Environment
  readonly origin: ReadonlyMap<string, SecretOrigin>
  /** A sentence for each file that cannot be used. None tells what stands in it. */
  readonly faults: readonly string[]
}

/** The variable that names the file of a secret. */
export const fileVariable = (name: string): string => `${name}_FILE`
export const FILE_VARIABLES: readonly string[] = Object.values(VARIABLES).flatMap(({ name, secret }) =>
  secret ? [fileVariable(name)] : [],
)

/**
 * Reads secrets from files: the one that `NAME_FILE` names, else the systemd credential `NAME`. Tools print an
 * environment; a file has an owner and a mode. Line breaks at the end are not part of a secret.
 */
export function withSecretFiles(env: Environment): WithSecrets {
  const made: Record<string, string | undefined> = { ...env }
  const origin = new Map<string, SecretOrigin>()
  const faults: string[] = []
  for (const { name, secret } of Object.values(VARIABLES)) {
    if (!secret) continue
    const named = env[fileVariable(name)]?.trim() || undefined
    delete made[fileVariable(name)]
    const given = (env[name]?.trim() ?? '') !== ''
    if (given && named !== undefined) faults.push(`${name} and ${fileVariable(name)} are both set: unset one of them`)
    if (given) continue
    const folder = env[CREDENTIALS]
    const credential = folder === undefined ? undefined : join(folder, name)
    const found = named ?? (credential !== undefined && existsSync(credential) ? credential : undefined)
    if (found === undefined) continue
    const read = readSecret(found)
    if ('fault' in read) faults.push(`${named === undefined ? name : fileVariable(name)}: ${found} ${read.fault}`)
    else {
      made[name] = read.text
      origin.set(name, named === undefined ? 'credential' : 'file')
    }
  }
  return { env: made, origin, faults }
}

function readSecret(file: string): { readonly text: string } | { readonly fault: string } {
  try {
    const about = statSync(file)
    if (!about.isFile()) return { fault: 'is no file' }
    if (about.size > MAX_BYTES) return { fault: `has more than ${MAX_BYTES / 1024} KiB` }
    const text = readFileSync(file, 'utf8').replace(/[\r\n]+$/, '')
    return text.trim() === '' ? { fault: 'is empty' } : { text }
  } catch (error) {
    return { fault: `cannot be read (${(error as NodeJS.ErrnoException).code})` }
  }
}
