// Builds and runs the C++ tests of the core: plain, with AddressSanitizer and UBSan, and the threads under ThreadSanitizer.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const folder = fileURLToPath(new URL('../../../../native/test', import.meta.url))

async function run(command: string, args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(command, args, {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  let errors = ''
  child.stdout.on('data', (data: Buffer) => {
    output += data
  })
  child.stderr.on('data', (data: Buffer) => {
    errors += data
  })
  const [code] = await once(child, 'close')
  return { code, output, errors }
}

for (const sanitizer of ['none', 'address', 'thread']) {
  t.test(`the core passes its own tests (sanitizer: ${sanitizer})`, { timeout: 300_000 }, async t => {
    const built = await run('make', ['-s', '-j2', `SANITIZE=${sanitizer}`])
    t.equal(built.code, 0, built.errors.slice(-2000))
    if (built.code !== 0) return
    const binary = `../../build/native-core/${sanitizer}/core_test`
    const { code, output, errors } = await run(binary, [], { TSAN_OPTIONS: 'halt_on_error=1' })
    const lines = output.split('\n')
    for (const line of lines.filter(line => line.startsWith('not ok'))) t.fail(line)
    t.equal(code, 0, errors.slice(-4000) || `exit ${code}`)
    const ran = lines.filter(line => line.startsWith('ok')).length
    t.equal(
      lines.find(line => line.startsWith('1..')),
      `1..${ran}`,
      'every check ran and holds',
    )
    t.ok(ran > 200, `${ran} checks`)
  })
}
