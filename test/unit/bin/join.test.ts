import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { askForHandover, handoverOf, keepHandover, offerHandover, TOKEN_MS } from '../../../bin/join.ts'
import { systemClock } from '../../../core/runtime/clock.ts'
import t from '../../support/harness/index.ts'

// A machine that joins gets the key and the settings of those that run, over a real socket.

const KEY = randomBytes(32)
const ENV = {
  STROWGER_DATABASE_URL: "postgres://user:pa'ss@db.example/strowger",
  STROWGER_DOMAIN: 'voice.example',
  STROWGER_SMTP_URL: 'smtp://user:p a$s@mail.example',
  STROWGER_HOST: '203.0.113.7',
  STROWGER_LINK: '10.0.0.1:5070',
  PATH: '/bin',
}
const AT = { host: '127.0.0.1', port: 0 }

t.test('a token hands over the key and the shared settings, once and to nobody else', async t => {
  const data_dir = mkdtempSync(join(tmpdir(), 'strowger-join-'))
  t.teardown(() => rmSync(data_dir, { recursive: true, force: true }))
  let given = 0
  const offer = await offerHandover(AT, {
    give: () => {
      given++
      return handoverOf(ENV, KEY)
    },
    clock: systemClock,
  })
  t.teardown(() => offer.close())
  const at = { ...AT, port: offer.port }
  await t.rejects(askForHandover(at, randomBytes(32).toString('base64url'), systemClock), /hands nothing over/)
  await t.rejects(askForHandover(at, 'guess', systemClock), /not a token/)
  t.equal(given, 0, 'who guesses gets nothing, and the token is still good')
  const handover = await askForHandover(at, offer.token, systemClock)
  t.equal(await offer.joined, '127.0.0.1')
  t.equal(handover.master_key, KEY.toString('hex'))
  t.same(Object.keys(handover.settings).sort(), ['STROWGER_DATABASE_URL', 'STROWGER_DOMAIN', 'STROWGER_SMTP_URL'])
  await t.rejects(askForHandover(at, offer.token, systemClock), /hands nothing over/, 'a second time')
  t.equal(given, 1)

  const file = join(data_dir, 'cluster.env')
  keepHandover(data_dir, {}, handover, file)
  t.same({ ...parseEnv(readFileSync(file, 'utf8')) }, handover.settings, 'the settings are read back as they were')
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.equal(statSync(join(data_dir, 'master.key')).mode & 0o777, 0o600)
  t.equal(readFileSync(join(data_dir, 'master.key'), 'utf8').trim(), KEY.toString('hex'))
  t.throws(() => keepHandover(data_dir, {}, handover, file), /exists/)
  const other = { ...handover, master_key: '11'.repeat(32) }
  t.throws(() => keepHandover(data_dir, {}, other, join(data_dir, 'b')), /a master key of its own/)
  rmSync(join(data_dir, 'master.key'))
  writeFileSync(join(data_dir, 'strowger.sqlite'), '')
  t.throws(() => keepHandover(data_dir, {}, handover, join(data_dir, 'b')), /an installation of its own/)
})

t.test('no token reads as an option in a command line', async t => {
  // One of 64 random ones would: with so many, this fails all but once in 10,000 runs.
  for (let made = 0; made < 600; made++) {
    const { token, close } = await offerHandover(AT, { give: () => handoverOf(ENV, KEY), clock: systemClock })
    close()
    if (token.startsWith('-')) t.fail(token)
  }
})

t.test('a token that nobody uses ends after 15 minutes', async t => {
  let due = (): void => undefined
  const clock = {
    ...systemClock,
    after: (ms: number, work: () => void) => {
      if (ms === TOKEN_MS) due = work
      return { cancel: () => undefined }
    },
  }
  const offer = await offerHandover(AT, { give: () => handoverOf(ENV, KEY), clock })
  due()
  t.equal(await offer.joined, null)
  await t.rejects(askForHandover({ ...AT, port: offer.port }, offer.token, systemClock), /hands nothing over/)
})
