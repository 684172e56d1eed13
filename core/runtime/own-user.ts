import { chownSync, lchownSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Processes that run under separate user ids without accounts, so that none can signal, trace or read another. */
const USERS = ['edge', 'media', 'sandbox'] as const
export type UserName = (typeof USERS)[number]

export const userOf = (name: UserName, first: number): number => first + USERS.indexOf(name)
/** Returns the user of third-party programs (core/runtime/program-runner.ts): the last id of the range from `first`. */
export const programsUser = (first: number): number => first + USERS.length

/** The arguments that the supervisor passes to a process: the user that it becomes once it has started. */
export const becoming = (user: number | null): string[] => (user === null ? [] : [String(user)])
export const toBecome = ([, , user]: readonly string[]): number | null => (user === undefined ? null : Number(user))

/**
 * Gives up root irrevocably in every thread: setuid(2) also drops all capabilities. Open descriptors stay open.
 * @throws when the kernel refuses
 */
export function becomeUser(id: number): void {
  process.setgroups?.([])
  process.setgid?.(id)
  process.setuid?.(id)
}

/** Gives a folder and its contents to a user. The folder itself is last: once the user owns it, all is done. */
export function giveFolder(folder: string, user: number): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (statSync(folder).uid === user) return
  // Changes the owner of links, not of their targets.
  for (const { parentPath, name } of readdirSync(folder, { withFileTypes: true, recursive: true }))
    lchownSync(join(parentPath, name), user, user)
  chownSync(folder, user, user)
}
