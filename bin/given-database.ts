import { readFileSync } from 'node:fs'
import { hostsOf, withoutPassword } from '../core/runtime/database-url.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'

/**
 * Returns the database that a command's words name: its URL, or `@FILE` with the URL. Everybody may list the words of a
 * command, so a password stands in a file. @throws StartRefused
 */
export function databaseGiven(word: string): string {
  const url = word.startsWith('@') ? contentOf(word.slice(1)).trim() : word
  if (url === word && withoutPassword(url).password !== null)
    throw new StartRefused(
      'everybody on this machine can list the words of a command: write the URL with its password into a file of yours ' +
        '(chmod 600), and name that as @FILE',
    )
  if (hostsOf(url) === null) throw new StartRefused('expected postgres://user:password@host:port/database')
  return url
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new StartRefused(`the file ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}
