import { StartRefused } from '../core/runtime/start-refused.ts'
import { readText } from './files.ts'

/** Reads a file of carriers. The endpoint checks its content. @throws StartRefused */
export function readCarriersFile(file: string): object {
  const value = parsed(file)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new StartRefused(`${file} must be a JSON object with the member "carriers"`)
}

function parsed(file: string): unknown {
  const text = readText(file)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new StartRefused(`${file} is not JSON: ${(error as Error).message}`)
  }
}
