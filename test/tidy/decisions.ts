import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = 'docs/decisions'
/** Made of the records by `npm run documents`. */
export const DECISION_INDEX = `${FOLDER}/README.md`

/** A record of docs/decisions. Its second paragraph may be its status; without one it holds as it stands. */
interface Decision {
  readonly number: string
  readonly file: string
  readonly title: string
  /** Such as `superseded by 0560.`; null where the record has no such line. */
  readonly status: string | null
}

/** @throws where a record does not begin with `# NNNN Title` or `# NNNN: Title`, the number being that of its file */
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

/** What the index says of a record, with links to those that changed it. */
export function statusCell({ status }: Pick<Decision, 'status'>, all: readonly Decision[]): string {
  if (status === null) return 'in force'
  return status.replace(/\.$/, '').replaceAll(/\b\d{4}\b/g, number => {
    const other = all.find(decision => decision.number === number)
    return other ? `[${number}](${other.file})` : number
  })
}

/** References such as `decision 0560` or `decisions/0560-…` to records that do not exist. */
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

/** The records and other documents are looked at here; `sources` are the files of code. */
export function decisionFindings(sources: readonly { readonly path: string; readonly text: string }[]): string[] {
  const known = new Set(decisions().map(({ number }) => number))
  const documents = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md']
    .concat(readdirSync('docs').flatMap(name => (name.endsWith('.md') ? [join('docs', name)] : [])))
    .concat(recordFiles().map(file => join(FOLDER, file)))
    .map(path => ({ path, text: readFileSync(path, 'utf8') }))
  return [...documents, ...sources].flatMap(({ path, text }) => referenceFindings(path, text, known))
}
