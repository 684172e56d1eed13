// Fuzzes the C++ core under AddressSanitizer and UBSan: frames, RTP, RTCP, SRTP, RFC 4733.
// `npm run fuzz -- native --count N --seed N`
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const TARGETS = ['datagram', 'rtp', 'rtcp', 'srtp', 'telephone_event']
const root = fileURLToPath(new URL('../../../../', import.meta.url))
const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '20000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const build = spawnSync('make', ['-s', '-j2', '-C', join(root, 'native/test'), 'fuzz', 'SANITIZE=address'], {
  stdio: ['ignore', 'inherit', 'inherit'],
})
if (build.status !== 0) process.exit(1)
const work = mkdtempSync(join(tmpdir(), 'fuzz-native-'))
let findings = 0
for (const target of TARGETS) {
  const corpus = join(root, 'native/fuzz/corpus', target)
  const last = join(work, target)
  const binary = join(root, 'build/native-core/address', `fuzz_${target}`)
  const args = ['--corpus', corpus, '--count', values.count, '--seed', values.seed]
  const run = spawnSync(binary, args, { encoding: 'utf8' })
  process.stdout.write(`${target}: ${run.stdout}`)
  if (run.status === 0) continue
  findings++
  // Run the same seed again with `--last`, which keeps each input, and add the crashing input to the corpus.
  spawnSync(binary, [...args, '--last', last])
  const kept = join(corpus, `crash-${values.seed}`)
  mkdirSync(corpus, { recursive: true })
  copyFileSync(last, kept)
  console.error(`${target}: seed ${values.seed} found something, kept as ${kept}\n${run.stderr}`)
}
rmSync(work, { recursive: true, force: true })
process.exit(findings === 0 ? 0 : 1)
