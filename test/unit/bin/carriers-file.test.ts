import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { readCarriersFile } from '../../../bin/carriers-file.ts'
import { describePlan } from '../../../core/domain/carriers/plan.ts'
import { putSandboxCarrier } from '../../../core/state/configuration/bootstrap.ts'
import { applyCarriers, listCarriers } from '../../../core/state/configuration/carriers.ts'
import { openState } from '../../../core/state/index.ts'

// `strowger carriers apply FILE` makes the carriers match the file. Applying the same file again changes nothing.

const folder = mkdtempSync(join(tmpdir(), 'strowger-carriers-'))
t.teardown(() => rmSync(folder, { recursive: true }))
const now = '2026-11-21T12:00:00.000Z'
const LAGOS = {
  name: 'Lagos Telecom',
  sources: ['203.0.113.0/25'],
  targets: [{ sip_uri: 'sip:198.51.100.7', transport: 'tcp' }, { sip_uri: 'sip:198.51.100.8' }],
  routes: [{ prefix: '234', cost_minor: 90 }, { prefix: 'any' }],
}

function fileOf(content: unknown): string {
  const file = join(folder, 'carriers.json')
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

t.test('fills in defaults, and refuses a wrong file with all its faults', async t => {
  t.match(readCarriersFile(fileOf({ carriers: [LAGOS] })), [
    {
      enabled: true,
      codecs: ['PCMU', 'PCMA'],
      targets: [
        { transport: 'tcp', priority: 1, weight: 100 },
        { transport: 'udp', priority: 2 },
      ],
      routes: [
        { prefix: '234', priority: 10, cost_minor: 90 },
        { prefix: '', priority: 10, cost_minor: 0 },
      ],
    },
  ])
  const wrong: [unknown, RegExp][] = [
    [{ carriers: [{ ...LAGOS, colour: 'red' }] }, /\/carriers\/0\/colour is not a field/],
    [{ carriers: [{ ...LAGOS, name: '', codecs: ['MP3'] }] }, /\/carriers\/0\/name [\s\S]*\/carriers\/0\/codecs\/0 /],
    [{ carriers: [LAGOS, LAGOS] }, /\/carriers\/1\/name is there twice/],
    [{ carriers: [{ ...LAGOS, sources: ['203.0.113.0/24', 'nowhere'] }] }, /\/carriers\/0\/sources\/1 /],
    [{ carriers: [{ ...LAGOS, targets: [{ sip_uri: 'sip:a\r\nVia: x' }] }] }, /\/carriers\/0\/targets\/0\/sip_uri/],
    [{ carriers: [{ ...LAGOS, routes: [{ prefix: '+23x' }] }] }, /\/carriers\/0\/routes\/0\/prefix/],
    ['{ "carriers": [', /is not JSON/],
    [[], /\/ must be object/],
  ]
  for (const [content, message] of wrong) t.throws(() => readCarriersFile(fileOf(content)), { message })
  t.throws(() => readCarriersFile(join(folder, 'nothing.json')), { message: /cannot be read \(ENOENT\)/ })
})

t.test('applies a file atomically: adds, changes and keeps carriers, and with --prune removes others', async t => {
  const state = await openState({ data_dir: folder })
  t.teardown(() => state.close())
  await putSandboxCarrier(state, { host: '127.0.0.1', port: 5999, now })
  const revision = async () =>
    (await state.db.selectFrom('configuration').select('revision').executeTakeFirstOrThrow()).revision
  const apply = async (carriers: unknown[], options: { prune?: boolean; dry?: boolean } = {}) => {
    const wished = readCarriersFile(fileOf({ carriers }))
    return describePlan(await applyCarriers(state, wished, { prune: false, dry: false, now, ...options }))
  }
  const all = async () => (await listCarriers(state.db)).filter(({ sandbox }) => sandbox === 0)
  const before = await revision()
  const shown = await apply([LAGOS], { dry: true })
  t.same(await all(), [], 'a dry run changes nothing')
  t.same(await apply([LAGOS]), shown, 'the steps match those of the dry run')
  t.equal(await revision(), before + 1, 'signaling nodes see a new revision')
  const [made] = await all()
  t.match(made, { name: 'Lagos Telecom', enabled: 1, revision: 1, sources: ['203.0.113.0/25'] })
  t.same(await apply([LAGOS]), [], 'the same file again changes nothing')
  t.equal(await revision(), before + 1)

  const routes = [{ prefix: '234', cost_minor: 80 }]
  const second = { ...LAGOS, enabled: false, codecs: ['PCMA'], targets: LAGOS.targets.slice(0, 1), routes }
  t.same(await apply([second]), [
    '~ carrier Lagos Telecom',
    '  ~ disabled',
    '  ~ codecs PCMU,PCMA to PCMA',
    '  - to sip:198.51.100.8 udp priority 2 weight 100',
    '  - route any priority 10 cost 0',
    '  - route 234 priority 10 cost 90',
    '  + route 234 priority 10 cost 80',
  ])
  const [changed] = await all()
  t.match(changed, { enabled: 0, codecs: ['PCMA'], revision: 2, routes: [{ cost_minor: 80 }] })
  t.equal(changed?.targets.length, 1)
  t.equal(changed?.targets[0]?.id, made?.targets[0]?.id, 'an unchanged target keeps its id')

  t.same(await apply([]), [], 'without --prune, carriers outside the file remain')
  t.same(await apply([], { prune: true }), ['- carrier Lagos Telecom'])
  t.same(await all(), [])
  t.equal((await state.db.selectFrom('carrier').select('id').execute()).length, 1, 'the sandbox carrier remains')
})
