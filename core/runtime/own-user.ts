import { chownSync, lchownSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Who become users of their own, each with an id without account: none of them can signal, trace or read another. */
const USERS = ['edge', 'media', 'sandbox'] as const
export type UserName = (typeof USERS)[number]

export const userOf = (name: UserName, first: number): number => first + USERS.indexOf(name)
/** Whom others' programs run as (core/runtime/program-runner.ts): the last id of those that begin with `first`. */
export const programsUser = (first: number): number => first + USERS.length

/** Whom a process becomes once it has started, and whom the programs that it runs are run as. */
export interface Users {
  readonly own: number
  readonly programs: number
}

/** The arguments that the supervisor passes to a process. */
export const becoming = (users: Users | null): string[] =>
  users === null ? [] : [String(users.own), String(users.programs)]
export const toBecome = ([, , own, programs]: readonly string[]): Users | null =>
  own === undefined ? null : { own: Number(own), programs: Number(programs) }

/**
 * Gives root up for good, in every thread: setuid(2) takes all capabilities with it. What is open stays open.
 * @throws where the kernel refuses
 */
export function becomeUser(id: number): void {
  process.setgroups?.([])
  process.setgid?.(id)
  process.setuid?.(id)
}

/** Makes the folder and all in it the property of a user. It comes last: where it is his, the rest is too. */
export function giveFolder(folder: string, user: number): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (statSync(folder).uid === user) return
  // Links are given, not what they lead to.
  for (const { parentPath, name } of readdirSync(folder, { withFileTypes: true, recursive: true }))
    lchownSync(join(parentPath, name), user, user)
  chownSync(folder, user, user)
}
