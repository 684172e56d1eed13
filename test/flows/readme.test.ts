import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { levelDbm0, readWavFile } from '../support/audio.ts'
import t from '../support/harness/index.ts'
import { sharedWorld } from '../support/shared-world.ts'
import { until } from '../support/wait.ts'

// Runs the commands of the README as written, one after the other.

const blocks = [...readFileSync('README.md', 'utf8').matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(match => match[1] ?? '')

t.test('the first call and the first trunk of the README work as written', async t => {
  const [, load, create, fetchCall, download, trunk, pbx] = blocks
  const w = await sharedWorld(t)
  const folder = mkdtempSync(join(tmpdir(), 'strowger-readme-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const wait = `for i in $(seq 180); do ${fetchCall} grep -q '"status":"completed"' ended.json && break; sleep 0.5; done`
  const script = [
    'set -e',
    `ln -s ${process.cwd()}/bin ${process.cwd()}/fixtures .`,
    ...[load, create, wait, fetchCall, download, `${trunk?.trimEnd()} > trunk.json`],
    `TRUNK=$(node -p 'JSON.parse(require("fs").readFileSync("trunk.json")).trunk.id')`,
    'applied() { curl -s "$STROWGER_URL/v1/trunks/$TRUNK" -H "Authorization: Bearer $STROWGER_API_KEY" |',
    `  grep -q '"apply":{"state":"applied"'; }`,
    'for i in $(seq 900); do applied && break; sleep 0.1; done; applied',
    pbx,
    'echo through',
  ].join('\n')
  const env = {
    PATH: process.env['PATH'] ?? '',
    STROWGER_DATA: w.data_dir,
    STROWGER_HTTP_PORT: new URL(w.base_url).port,
    STROWGER_SIP_PORT: String(w.sip.port),
  }
  const { stdout } = await promisify(execFile)('bash', ['-c', script], { cwd: folder, env, timeout: 240_000 })
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
