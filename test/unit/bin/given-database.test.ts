import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { databaseGiven } from '../../../bin/given-database.ts'
import t from '../../support/harness/index.ts'

// Everybody on a machine can list the words of its commands, so none of them may be a password.

t.test('a password in the words of a command is refused, and one in a file is used', async t => {
  const secret = 'postgres://strowger:open%20sesame@127.0.0.9:5432/strowger'
  const refused = (word: string): string => {
    try {
      return databaseGiven(word)
    } catch (error) {
      return `refused: ${(error as Error).message}`
    }
  }
  t.match(refused(secret), /^refused: .*@FILE/)
  t.notMatch(refused(secret), 'sesame')
  const file = join(t.testdir(), 'url')
  writeFileSync(file, `${secret}\n`)
  t.equal(databaseGiven(`@${file}`), secret)
  const open = 'postgres://strowger@127.0.0.9:5432/strowger'
  t.equal(databaseGiven(open), open)
  t.match(refused(`@${file}.none`), /^refused: the file .* cannot be read \(ENOENT\)/)
  writeFileSync(file, 'sesame')
  t.match(refused(`@${file}`), /^refused: expected postgres:/)
  t.notMatch(refused(`@${file}`), 'sesame')
})
