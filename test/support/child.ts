import { spawn } from 'node:child_process'

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs `bin/strowger`. Of our environment it gets only PATH. */
export function strowger(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
): { readonly ended: Promise<Ended>; printed(): string } {
  const child = spawn('bin/strowger', words, {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', text => {
    stderr += text
  })
  return {
    ended: new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', code => resolve({ code, stdout, stderr }))
    }),
    printed: () => stdout,
  }
}
