import { readFileSync } from 'node:fs'
import { StartRefused } from '../core/runtime/start-refused.ts'

/** Reads a file of carriers. The endpoint checks its content. @throws StartRefused */
export function readCarriersFile(file: string): object {
  const value = parsed(file)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new StartRefused(`${file} must be a JSON object with the member "carriers"`)
}

function parsed(file: string): unknown {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new StartRefused(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new StartRefused(`${file} is not JSON: ${(error as Error).message}`)
  }
}
