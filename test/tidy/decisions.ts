import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = 'docs/decisions'
/** The index that `npm run documents` generates from the records. */
export const DECISION_INDEX = `${FOLDER}/README.md`

/** A record of docs/decisions. Its second paragraph may state its status; a record without one is in force. */
interface Decision {
  readonly number: string
  readonly file: string
  readonly title: string
  /** Such as `superseded by 0560.`; null where the record has no such line. */
  readonly status: string | null
}

/** @throws when a record does not begin with `# NNNN Title` or `# NNNN: Title`, or its file has another number */
export function readDecision(file: string, text: string): Decision {
  const [heading = '', , line = ''] = text.split('\n')
  const [, number, title] = /^# (\d{4}):? (\S.*)$/.exec(heading) ?? []
  if (number === undefined || title === undefined || !file.startsWith(`${number}-`))
    throw new Error(`${FOLDER}/${file}: the first line is "# NNNN Title", with the number of the file`)
  return { number, file, title, status: /^Status: (.+)$/.exec(line)?.[1] ?? null }
}

const recordFiles = (): string[] =>
  readdirSync(FOLDER)
    .filter(file => file !== 'README.md')
    .sort()

export const decisions = (): Decision[] =>
  recordFiles().map(file => readDecision(file, readFileSync(join(FOLDER, file), 'utf8')))

/** Returns a record's status for the index, with links to the records that changed it. */
export function statusCell({ status }: Pick<Decision, 'status'>, all: readonly Decision[]): string {
  if (status === null) return 'in force'
  return status.replace(/\.$/, '').replaceAll(/\b\d{4}\b/g, number => {
    const other = all.find(decision => decision.number === number)
    return other ? `[${number}](${other.file})` : number
  })
}

/** Finds references such as `decision 0560` or `decisions/0560-…` to records that do not exist. */
export function referenceFindings(path: string, text: string, known: ReadonlySet<string>): string[] {
  const lists = text.matchAll(/\bdecisions?[ /](\d{4}(?:(?:, | and |, and )\d{4})*)/gi)
  const statuses = text.matchAll(/^Status: (.+)$/gm)
  const numbers = [...lists, ...(path.startsWith(FOLDER) ? statuses : [])].flatMap(
    ([, list = '']) => list.match(/\b\d{4}\b/g) ?? [],
  )
  return [...new Set(numbers)]
    .filter(number => !known.has(number))
    .map(number => `${path}: there is no decision ${number}`)
}

/** Checks the references in `sources` (the code), in the records and in the other documents. */
export function decisionFindings(sources: readonly { readonly path: string; readonly text: string }[]): string[] {
  const known = new Set(decisions().map(({ number }) => number))
  const documents = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md']
    .concat(readdirSync('docs').flatMap(name => (name.endsWith('.md') ? [join('docs', name)] : [])))
    .concat(recordFiles().map(file => join(FOLDER, file)))
    .map(path => ({ path, text: readFileSync(path, 'utf8') }))
  return [...documents, ...sources].flatMap(({ path, text }) => referenceFindings(path, text, known))
}
