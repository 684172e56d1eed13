import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { dayOf } from '../../core/domain/rating/day.ts'
import { unseal } from '../../core/runtime/secrets.ts'
import { bumpConfiguration } from '../../core/state/configuration/bump.ts'
import { checkDocument } from '../../markup/check.ts'
import { levelDbm0, readWavFile } from '../support/audio.ts'
import t, { type Test } from '../support/harness/index.ts'
import { freePort } from '../support/ports.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { callee, receive, sipp } from '../support/sipp.ts'
import { until } from '../support/wait.ts'
import type { World } from '../support/world.ts'

// Runs the commands of the README and of the guides as written, one after the other.

/** The blocks of a document in one language. */
const blocksOf = (path: string, language: string): string[] =>
  [...readFileSync(path, 'utf8').matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    match => match[1] ?? '',
  )

const blocks = blocksOf('README.md', 'sh')

/** Runs a script in a folder of its own that has the tree's `bin` and `fixtures`. Resolves with what it printed. */
async function run(t: Test, w: World, lines: readonly string[], files: Readonly<Record<string, string>> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-readme-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const script = ['set -e', `ln -s ${process.cwd()}/bin ${process.cwd()}/fixtures .`, ...lines].join('\n')
  const env = {
    PATH: process.env['PATH'] ?? '',
    STROWGER_DATA: w.data_dir,
    STROWGER_HTTP_PORT: new URL(w.base_url).port,
    STROWGER_SIP_PORT: String(w.sip.port),
  }
  const { stdout } = await promisify(execFile)('bash', ['-c', script], { cwd: folder, env, timeout: 240_000 })
  return { folder, stdout }
}

t.test('the first call and the first trunk of the README work as written', async t => {
  const [, load = '', create = '', fetchCall = '', download = '', trunk = '', pbx = ''] = blocks
  const w = await sharedWorld(t)
  const wait = `for i in $(seq 180); do ${fetchCall} grep -q '"status":"completed"' ended.json && break; sleep 0.5; done`
  // A recording is completed shortly after its call.
  const tapes = '"$STROWGER_URL/2010-04-01/Accounts/$ACCOUNT_SID/Calls/$CALL_SID/Recordings.json"'
  const taped = `curl -s -u "$ACCOUNT_SID:$AUTH_TOKEN" ${tapes} | grep -q '"status":"completed"'`
  const { folder, stdout } = await run(t, w, [
    ...[load, create, wait, `for i in $(seq 180); do ${taped} && break; sleep 0.5; done`, fetchCall, download],
    `${trunk.trimEnd()} > trunk.json`,
    `TRUNK=$(node -p 'JSON.parse(require("fs").readFileSync("trunk.json")).trunk.id')`,
    'applied() { curl -s "$STROWGER_URL/v1/trunks/$TRUNK" -H "Authorization: Bearer $STROWGER_API_KEY" |',
    `  grep -q '"apply":{"state":"applied"'; }`,
    'for i in $(seq 900); do applied && break; sleep 0.1; done; applied',
    pbx,
    'echo through',
  ])
  t.match(stdout, /through\n$/)
  t.equal(JSON.parse(readFileSync(join(folder, 'ended.json'), 'utf8')).status, 'completed')
  const wav = readWavFile(join(folder, 'recording.wav'))
  t.ok(wav.duration_ms > 3000 && levelDbm0(wav.channels[0] ?? new Int16Array(1)) > -40, 'speech can be heard')
  const { trunk: made } = JSON.parse(readFileSync(join(folder, 'trunk.json'), 'utf8'))
  t.match(made.id, /^trk_/)
  const cdr = await until('the record of the trunk call', () =>
    w.state.db.selectFrom('cdr').selectAll().where('trunk_id', '=', made.id).executeTakeFirst(),
  )
  t.match(cdr, { origin: 'trunk', status: 'completed', to_number: '+2348030000006' })
})

t.test('the programs of the quick start place calls that are answered', async t => {
  const w = await sharedWorld(t)
  const path = 'docs/guides/quick-start.md'
  const [load, curl, node, python] = blocksOf(path, 'sh')
  const files = { 'call.mjs': blocksOf(path, 'js')[0] ?? '', 'call.py': blocksOf(path, 'python')[0] ?? '' }
  const { stdout } = await run(t, w, [load ?? '', `${curl?.trimEnd()} > call.json`, node ?? '', python ?? ''], files)
  const ended = [...stdout.matchAll(/^(CA[0-9a-f]{32}) completed \d+ s$/gm)].map(([, sid]) => sid)
  t.equal(ended.length, 2, stdout)
})

t.test('the first application of the guides answers a routed number with documents without faults', async t => {
  const w = await sharedWorld(t)
  const path = 'docs/guides/first-application.md'
  const [make, route] = blocksOf(path, 'sh')
  const numbers = () => w.state.db.selectFrom('number').select(['id', 'route_kind', 'route_id']).execute()
  const before = await numbers()
  await run(t, w, [blocksOf('docs/guides/quick-start.md', 'sh')[0] ?? '', make ?? '', route ?? ''])
  const changed = (await numbers()).filter(
    ({ id, route_id }) => before.find(number => number.id === id)?.route_id !== route_id,
  )
  t.match(changed, [{ route_kind: 'voice_application' }])
  // Other stories use the number.
  for (const { id, ...was } of before.filter(number => number.id === changed[0]?.id))
    await w.state.transaction(async trx => {
      await trx.updateTable('number').set(was).where('id', '=', id).execute()
      await bumpConfiguration(trx)
    })

  const port = await freePort()
  const program = blocksOf(path, 'js')[0]?.replaceAll('3000', String(port)) ?? ''
  const server = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => server.kill())
  await once(server.stdout, 'data')
  const ask = async (below: string, fields: Record<string, string>) => {
    const answer = await fetch(`http://127.0.0.1:${port}${below}`, {
      method: 'POST',
      body: new URLSearchParams(fields),
    })
    const text = await answer.text()
    t.same(checkDocument(text, { url: `http://127.0.0.1:${port}${below}` }).advice, [], text)
    return text
  }
  t.match(await ask('/menu', {}), /Press one/)
  t.match(await ask('/chosen', { Digits: '1' }), /It is \d\d:\d\d/)
  t.match(await ask('/chosen', { Digits: '2' }), /<Record/)
  t.match(await ask('/thanks', { RecordingUrl: 'x' }), /Goodbye/)
})

t.test('the guide to going live leads from a carrier to a paid call, as written', async t => {
  const w = await sharedWorld(t)
  const path = 'docs/guides/going-live.md'
  const answers = [callee.respond(180, 'Ringing'), callee.respond(200, 'OK', { sdp: true }), receive.request('ACK')]
  const steps_of_carrier = [receive.request('INVITE'), ...answers, receive.request('BYE'), callee.ok]
  const carrier = await sipp(t, { local_ip: '127.0.0.58', steps: steps_of_carrier })
  const at_carrier = (text: string) =>
    text
      .replaceAll('198.51.100.10/32', '127.0.0.58/32')
      .replaceAll('sip:198.51.100.10', `sip:127.0.0.58:${carrier.port}`)
  const steps = blocksOf(path, 'sh').map(at_carrier)
  const { folder } = await run(t, w, [...steps.filter(step => !step.includes('doctor')), 'echo "$PROJECT" > project'])
  const project = readFileSync(join(folder, 'project'), 'utf8').trim()
  t.ok(existsSync(join(folder, 'strowger-backup.tar.gz')))
  // A node routes by the configuration that it last read. It has read this when it has applied a later trunk.
  await w.addTrunk('127.0.0.59')

  const account = await w.state.db
    .selectFrom('voice_account')
    .selectAll()
    .where('project_id', '=', project)
    .executeTakeFirstOrThrow()
  const secret = Buffer.from(`${account.account_sid}:${unseal(w.master_key, account.auth_token_sealed)}`)
  const created = await fetch(`${w.base_url}/2010-04-01/Accounts/${account.account_sid}/Calls.json`, {
    method: 'POST',
    headers: { Authorization: `Basic ${secret.toString('base64')}` },
    body: new URLSearchParams({
      From: '+2342016660000',
      To: '+2348031234567',
      InlineMarkup: '<Response><Pause length="2"/></Response>',
    }),
  })
  t.equal(created.status, 201, await created.clone().text())
  const { ok, messages } = await carrier.done
  t.ok(ok, messages)
  t.match(messages, /INVITE sip:\+2348031234567@/)
  const cdr = await until('the record of the paid call', () =>
    w.state.db.selectFrom('cdr').selectAll().where('project_id', '=', project).executeTakeFirst(),
  )
  const { stdout } = await run(t, w, [`bin/strowger balance ledger ${project} --json`])
  const price = Math.ceil((cdr.duration_seconds * 1150) / 60)
  const { time_zone } = await w.state.db
    .selectFrom('organization')
    .innerJoin('project', 'project.organization_id', 'organization.id')
    .select('organization.time_zone')
    .where('project.id', '=', project)
    .executeTakeFirstOrThrow()
  // Days of margins are those of the customer, who may be a day ahead of UTC.
  const day = dayOf(Date.parse(cdr.ended_at), time_zone)
  const span = `--from ${day} --to ${day} --by call --project ${project}`
  const margins = JSON.parse((await run(t, w, [`bin/strowger rates margins ${span} --json`])).stdout)
  const cost = Math.ceil((cdr.duration_seconds * 600) / 60)
  t.match(margins.data, [{ charge_minor: price, cost_minor: cost, margin_minor: price - cost }])
  t.match(JSON.parse(stdout), [
    { kind: 'charge', amount_minor: -price, balance_after_minor: 500_000 - price, call_sid: cdr.call_sid },
    { kind: 'top_up', amount_minor: 500_000, reference: 'BANK-0001' },
  ])
})
