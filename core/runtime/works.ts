import { request } from 'node:http'
import { join } from 'node:path'
import { METRICS_FOLDER } from './metrics-folder.ts'

// What the sockets of processes are asked by programs that have no metrics of their own.

/** The folder of the sockets on which processes serve their metrics, and whether they work. */
export const socketsFolder = (run_dir: string): string => join(run_dir, METRICS_FOLDER)

/** Whether a process does its work now, by part. */
export type Works = Readonly<Record<string, boolean>>

export const WORKS_PATH = '/works'
/** A process looks for 1.5 s at most (`signaling/takes-calls.ts`). One that does not answer does not work. */
const WORKS_TIMEOUT_MS = 2500

/** Asks a process of this machine whether it does its work. Of one that does not answer, nothing works. */
export function askWorks(run_dir: string, process_name: string): Promise<Works> {
  const at = join(socketsFolder(run_dir), `${process_name}.sock`)
  return readSocket(at, WORKS_PATH, WORKS_TIMEOUT_MS).then(
    text => JSON.parse(text) as Works,
    () => ({}),
  )
}

/** Reads what a process serves on its socket. */
export function readSocket(socketPath: string, path: string, timeout: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, path, timeout }, response => {
      const chunks: Buffer[] = []
      response.on('data', chunk => chunks.push(chunk))
      response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
      response.on('error', reject)
    })
    call.on('timeout', () => call.destroy(new Error('timeout')))
    call.on('error', reject)
    call.end()
  })
}
