import { hostsOf } from '../../../../../core/runtime/database-url.ts'
import { failure } from '../../../../../core/state/port.ts'
import { Link } from '../../../../../core/state/postgres/link.ts'
import t from '../../../../support/harness/index.ts'
import { postgresDatabase } from '../../../../support/postgres.ts'
import { PATIENCE_MS } from '../../../../support/wait.ts'

const PATIENT = { connect_ms: PATIENCE_MS, statement_ms: PATIENCE_MS }

t.test('a statement that runs often is prepared, and a changed table costs its connection once', async t => {
  const [host] = hostsOf(await postgresDatabase()) ?? []
  if (!host) throw new Error('no host')
  const open = async () => {
    const link = await Link.open(host, PATIENT, { statements: 0, messages: 0, commits: 0 })
    t.teardown(() => link.close())
    return link
  }
  const [link, other] = [await open(), await open()]
  const read = (by: Link) => by.run('select * from configuration where id = $1', [1])
  const prepared = async () => (await link.run('select statement from pg_prepared_statements')).rows
  t.match((await read(link)).rows, [{ id: 1, revision: 1 }])
  t.same(await prepared(), [], 'not what runs once')
  for (let run = 0; run < 5; run++) t.match((await read(link)).rows, [{ id: 1, revision: 1 }])
  t.match(await prepared(), [{ statement: 'select * from configuration where id = $1' }])

  await other.run('alter table configuration add column extra bigint')
  t.equal(failure(await read(link).catch(error => error)), 'busy', 'the same work may succeed')
  t.equal(link.broken, true)
  t.match((await read(other)).rows, [{ id: 1, revision: 1, extra: null }])
})

t.test('a batch carries every text as it is, whatever its length and its characters', async t => {
  const [host] = hostsOf(await postgresDatabase()) ?? []
  if (!host) throw new Error('no host')
  const link = await Link.open(host, PATIENT, { statements: 0, messages: 0, commits: 0 })
  t.teardown(() => link.close())
  const texts = ['', 'a', 'é€😀', '€'.repeat(100_000), '\ud800', "'; drop table call; --", 'x'.repeat(16_377)]
  const sql = 'select $1::text'
  const replies = await link.batch([...texts, null].map(text => ({ sql, values: [text] })))
  // Half of a pair is no character.
  t.same(
    replies.map(reply => reply.texts[0]),
    [...texts.map(text => (text === '\ud800' ? '\ufffd' : text)), null],
  )
  t.match(await link.batch([{ sql: 'select $1::int + $2::int', values: [40, 2] }]), [{ texts: ['42'] }])
  const wrong = await link.batch([{ sql: 'select nothing', values: [] }]).catch(error => error)
  t.equal(failure(wrong), null)
  t.match(await link.batch([{ sql, values: ['after'] }]), [{ texts: ['after'] }])
})
