import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Test } from '../../support/harness/index.ts'

const folder = fileURLToPath(new URL('../../../../native/test', import.meta.url))

async function run(command: string, args: readonly string[]) {
  const child = spawn(command, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
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

/**
 * Builds the C++ core without Node, with a sanitizer of g++ or with 'none', runs its tests and reports each failed
 * check. Expects at least `least` checks. `within` is a command that runs the test program.
 */
export async function coreTests(
  t: Test,
  sanitizer: 'none' | 'address' | 'thread',
  args: readonly string[],
  least: number,
  within: readonly string[] = [],
) {
  // Builds share an object (native/test/Makefile), so they take turns.
  const built = await run('flock', ['.', 'make', '-s', '-j2', `SANITIZE=${sanitizer}`])
  t.equal(built.code, 0, `it builds without a warning ${built.errors.slice(-2000)}`)
  if (built.code !== 0) return
  const [command = '', ...rest] = [...within, `../../build/native-core/${sanitizer}/core_test`, ...args]
  const { code, output, errors } = await run(command, rest)
  const lines = output.split('\n')
  for (const line of lines.filter(line => line.startsWith('not ok'))) t.fail(line)
  t.equal(code, 0, errors.slice(-4000) || `exit ${code}`)
  const ran = lines.filter(line => line.startsWith('ok')).length
  t.equal(
    lines.find(line => line.startsWith('1..')),
    `1..${ran}`,
    'every check ran and holds',
  )
  t.ok(ran >= least, `${ran} checks`)
}
