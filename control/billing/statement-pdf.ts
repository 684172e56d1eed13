import type PdfDocument from 'pdfkit'
import { dayIn, dueMinor, moneyText, type Statement, type StatementLine } from '../../core/domain/billing/statement.ts'

/** The head of the page. A statement without `issued_at` is shown as not issued. */
interface StatementHead {
  readonly id: string
  readonly issued_at: string | null
}

const MARGIN = 50
const WIDTH = 595.28 - 2 * MARGIN
const ROW = 16
const COLUMNS = [
  { title: '', at: 0, width: WIDTH - 250, align: 'left' },
  { title: 'Calls', at: WIDTH - 250, width: 60, align: 'right' },
  { title: 'Minutes', at: WIDTH - 190, width: 70, align: 'right' },
  { title: 'Amount', at: WIDTH - 120, width: 120, align: 'right' },
] as const

/** Renders a statement on A4 pages. The same statement gives the same bytes, so that copies can be compared. */
export async function statementPdf(statement: Statement, head: StatementHead): Promise<Buffer> {
  const at = new Date(head.issued_at ?? `${statement.from}T00:00:00.000Z`)
  // Loaded on demand: it would take a third of the CPU time of the control process's start, and few requests need it.
  const { default: Pdf } = await import('pdfkit')
  const document = new Pdf({
    size: 'A4',
    margin: MARGIN,
    info: { Title: `${titleOf(statement)} ${head.id}`, Author: 'Strowger', CreationDate: at, ModDate: at },
  })
  const chunks: Buffer[] = []
  const ended = new Promise<void>((resolve, reject) => {
    document.on('data', (chunk: Buffer) => chunks.push(chunk))
    document.on('end', resolve)
    document.on('error', reject)
  })
  write(document, statement, head)
  document.end()
  await ended
  return Buffer.concat(chunks)
}

type Pdf = InstanceType<typeof PdfDocument>

const titleOf = ({ kind }: Statement): string => (kind === 'invoice' ? 'Invoice' : 'Statement')

function write(document: Pdf, statement: Statement, head: StatementHead): void {
  const { currency } = statement
  const money = (minor: number): string => moneyText(minor, currency)
  document.font('Helvetica-Bold').fontSize(18).text(titleOf(statement), MARGIN, MARGIN)
  document.font('Helvetica').fontSize(10).moveDown(0.5)
  const facts: readonly [string, string][] = [
    ['Number', head.id],
    ['Period', `${statement.from} to ${statement.to}`],
    ['Issued', head.issued_at === null ? 'not yet: the month is not over' : dayIn(statement, head.issued_at)],
    ['Organization', statement.organization_name],
    ['Project', `${statement.project_name} (${statement.project_id})`],
    ['Billing account', statement.billing_account_id],
  ]
  for (const [name, value] of facts) pair(document, name, printable(value))
  table(document, 'Calls by destination', statement.destinations, money)
  table(document, 'Calls by trunk', statement.trunks, money)
  if (statement.numbers.length > 0) {
    heading(document, 'Numbers')
    for (const { label, charge_minor } of statement.numbers) row(document, [label, '', '', money(charge_minor)])
  }
  if (statement.payments.length > 0) {
    heading(document, 'Payments and adjustments')
    for (const { at, kind, amount_minor, note } of statement.payments)
      row(document, [
        `${dayIn(statement, at)}  ${kind === 'top_up' ? 'Top-up' : 'Adjustment'}  ${note ?? ''}`,
        '',
        '',
        money(amount_minor),
      ])
  }
  heading(document, 'Summary')
  if (statement.opening_balance_minor !== null)
    row(document, ['Balance at the beginning', '', '', money(statement.opening_balance_minor)])
  row(document, ['Charges', String(statement.calls), minutes(statement.billed_seconds), money(statement.charges_minor)])
  row(document, ['Payments and adjustments', '', '', money(statement.payments_minor)])
  if (statement.others_minor !== 0)
    row(document, ['Charges of other projects of the account', '', '', money(statement.others_minor)])
  if (statement.closing_balance_minor !== null)
    row(document, ['Balance at the end', '', '', money(statement.closing_balance_minor)])
  if (statement.kind === 'invoice') row(document, ['Amount due', '', '', money(dueMinor(statement))])
}

function pair(document: Pdf, name: string, value: string): void {
  const { y } = document
  document.fillColor('#555555').text(name, MARGIN, y, { width: 110 })
  document.fillColor('#000000').text(value, MARGIN + 110, y, { width: WIDTH - 110 })
}

function table(document: Pdf, title: string, lines: readonly StatementLine[], money: (minor: number) => string): void {
  heading(document, title)
  row(
    document,
    COLUMNS.map(column => column.title),
  )
  for (const line of lines)
    row(document, [line.label, String(line.calls), minutes(line.billed_seconds), money(line.charge_minor)])
  if (lines.length === 0) row(document, ['No calls', '', '', ''])
}

function heading(document: Pdf, title: string): void {
  room(document, 4 * ROW)
  document.moveDown(1).font('Helvetica-Bold').fontSize(12).text(title, MARGIN)
  document.font('Helvetica').fontSize(10).moveDown(0.3)
}

function row(document: Pdf, cells: readonly string[]): void {
  room(document, ROW)
  const { y } = document
  for (const [at, column] of COLUMNS.entries()) {
    const options = { width: column.width, align: column.align, height: ROW, ellipsis: true, lineBreak: false } as const
    document.text(printable(cells[at] ?? ''), MARGIN + column.at, y, options)
  }
  document.x = MARGIN
  document.y = y + ROW
}

/** Begins a new page when less than `height` is left on the current one. */
function room(document: Pdf, height: number): void {
  if (document.y + height > document.page.height - MARGIN) document.addPage()
}

const minutes = (seconds: number): string => (seconds / 60).toFixed(1)

/** Replaces characters that the standard PDF fonts lack with question marks; they are Latin only (32000-1, annex D). */
const printable = (text: string): string => text.replace(/[^\u0020-\u007e\u00a0-\u00ff]/g, '?')
