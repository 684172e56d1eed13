import { CsvError, type Options, parse } from 'csv-parse'

interface Problem {
  readonly line: number
  readonly message: string
}

const MAX_PROBLEMS = 100
const SLICE_BYTES = 8192

/**
 * Reads a CSV table (RFC 4180) whose first line names its columns. `take` gets the cells of each line in the order of
 * `required` and `optional`, and returns what is wrong with them, or null. Returns all problems by line, up to the
 * first line that is not CSV. It breathes between slices, because a table may have a million lines.
 */
export async function readTable(
  csv: string,
  breathe: () => Promise<void>,
  table: {
    readonly required: readonly string[]
    readonly optional?: readonly string[]
    readonly max_lines: number
    take(cells: readonly string[], line: number): string | null
  },
): Promise<readonly Problem[]> {
  const { required, optional = [], max_lines } = table
  const problems = new Map<number, string>()
  let at: readonly number[] | null = null
  let count = 0
  try {
    await parseInSlices(csv, breathe, {
      bom: true,
      trim: true,
      record_delimiter: ['\r\n', '\n'],
      relax_column_count: true,
      skip_empty_lines: true,
      // Handles each line as it is parsed, so that the parser stores none.
      on_record: (fields: string[], { lines }) => {
        count += 1
        if (count > max_lines) return null
        if (count === 1) at = columnsOf(fields, required, optional)
        else if (at) {
          const fault = table.take(
            at.map(column => fields[column] ?? ''),
            lines,
          )
          if (fault !== null && problems.size < MAX_PROBLEMS) problems.set(lines, fault)
        }
        return null
      },
    })
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    // After a misplaced quote the beginning of the next line is unknown.
    problems.set(Number(error['lines'] ?? 1), `this is not CSV: ${error.message}`)
  }
  if (at === null) return [{ line: 1, message: `the first line must be ${required.join(',')}` }]
  if (count > max_lines) return [{ line: max_lines, message: 'the list is too long' }]
  return [...problems].map(([line, message]) => ({ line, message }))
}

/** Returns the index of each column, -1 for a missing optional one; null when a required one is missing. */
function columnsOf(
  header: readonly string[],
  required: readonly string[],
  optional: readonly string[],
): readonly number[] | null {
  const names = header.map(name => name.toLowerCase())
  const at = [...required, ...optional].map(column => names.indexOf(column))
  return at.slice(0, required.length).includes(-1) ? null : at
}

async function parseInSlices(csv: string, breathe: () => Promise<void>, options: Options<string[]>) {
  const parser = parse(options)
  const ended = new Promise<void>((resolve, reject) => {
    parser.once('end', resolve).once('error', reject).resume()
  })
  let failed = false
  ended.catch(() => {
    failed = true
  })
  const bytes = Buffer.from(csv)
  for (let at = 0; at < bytes.length && !failed; at += SLICE_BYTES) {
    parser.write(bytes.subarray(at, at + SLICE_BYTES))
    await breathe()
  }
  if (!failed) parser.end()
  await ended
}
