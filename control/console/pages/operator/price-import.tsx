import { useRef, useState } from 'preact/hooks'
import { ask } from '../../lib/api.ts'
import type { OperatorPriceDifference, OperatorProject, RateListRequest } from '../../lib/api-types.ts'
import { useAction } from '../../lib/data.ts'
import { count, instantOf } from '../../lib/format.ts'
import { Button, Facts, Notice, ScrollBox } from '../../ui/basics.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { AreaField, CheckField, Form, SelectField, TextField, TimeField } from '../../ui/form.tsx'
import { toast } from '../../ui/toast.tsx'

interface Props {
  readonly projects: readonly OperatorProject[]
  readonly onClose: () => void
  readonly onImported: () => void
}

const EXAMPLE = 'prefix,label,rate,unit,initial,additional\n234,Nigeria,450,minute,60,60'

interface Draft {
  readonly csv: string
  readonly direction: 'outbound' | 'inbound'
  readonly project_id: string
  /** Local date and time of a form; empty is now. */
  readonly from: string
}

const listOf = ({ csv, direction, project_id, from }: Draft): RateListRequest => ({
  csv,
  direction,
  project_id: project_id === '' ? null : project_id,
  ...(from === '' ? {} : { effective_from: instantOf(from) }),
})

/** Compares a rate list with the prices in force, then imports it. */
export function ImportRates({ projects, onClose, onImported }: Props) {
  const [draft, setDraft] = useState<Draft>({ csv: '', direction: 'outbound', project_id: '', from: '' })
  const [difference, setDifference] = useState<OperatorPriceDifference | null>(null)
  const action = useAction()
  const compare = () =>
    action.run(async () =>
      setDifference(
        await ask<OperatorPriceDifference>('POST', '/operator/v1/price-books/diff', { body: listOf(draft) }),
      ),
    )
  return (
    <Dialog title={difference ? 'What the list changes' : 'Import a rate list'} onClose={onClose} wide>
      {difference ? (
        <Confirm of={difference} list={listOf(draft)} onBack={() => setDifference(null)} onImported={onImported} />
      ) : (
        <Form
          onSubmit={() => void compare()}
          submit="Compare"
          busy={action.busy}
          problem={action.problem}
          fields={['/csv', '/direction', '/project_id', '/effective_from']}
        >
          <ListFields draft={draft} set={setDraft} projects={projects} problem={action.problem} />
        </Form>
      )}
    </Dialog>
  )
}

function ListFields({
  draft,
  set,
  projects,
  problem,
}: {
  draft: Draft
  set: (draft: Draft) => void
  projects: readonly OperatorProject[]
  problem: ReturnType<typeof useAction>['problem']
}) {
  return (
    <>
      <AreaField
        label="Rate list, CSV"
        hint="Lines of prefix, label, rate, unit, initial, additional. Rates are in kobo: 900 is ₦9.00."
        placeholder={EXAMPLE}
        mono
        rows={8}
        value={draft.csv}
        onInput={csv => set({ ...draft, csv })}
        problem={problem}
        at="/csv"
      />
      <FileField onText={csv => set({ ...draft, csv })} />
      <div class="grid-2">
        <SelectField
          label="For"
          value={draft.project_id}
          onInput={project_id => set({ ...draft, project_id })}
          options={[
            { value: '', text: 'Every project without a book of its own' },
            ...projects.map(({ id, name }) => ({ value: id, text: name })),
          ]}
        />
        <SelectField
          label="Direction"
          value={draft.direction}
          onInput={direction => set({ ...draft, direction: direction as Draft['direction'] })}
          options={[
            { value: 'outbound', text: 'Outbound' },
            { value: 'inbound', text: 'Inbound' },
          ]}
        />
        <TimeField
          label="In force from"
          hint="Empty: from now on."
          value={draft.from}
          onInput={from => set({ ...draft, from })}
          problem={problem}
          at="/effective_from"
        />
      </div>
    </>
  )
}

function FileField({ onText }: { onText: (text: string) => void }) {
  const file = useRef<HTMLInputElement>(null)
  const take = async () => {
    const [chosen] = file.current?.files ?? []
    if (chosen) onText(await chosen.text())
  }
  return (
    <label class="field">
      <span class="label">Or a file</span>
      <input ref={file} type="file" accept=".csv,text/csv" onChange={() => void take()} />
    </label>
  )
}

function Confirm({
  of,
  list,
  onBack,
  onImported,
}: {
  of: OperatorPriceDifference
  list: RateListRequest
  onBack: () => void
  onImported: () => void
}) {
  const [name, setName] = useState('')
  const [confirm_leaps, setLeaps] = useState(false)
  const [confirm_ended, setEnded] = useState(false)
  const action = useAction()
  const put = async () => {
    const body = { name: name.trim(), ...list, confirm_leaps, confirm_ended }
    if (!(await action.run(() => ask('POST', '/operator/v1/price-books/imports', { body, once: true })))) return
    toast('Imported; applying')
    onImported()
  }
  return (
    <>
      <Facts
        rows={[
          ['Compared with', of.against?.name ?? 'no prices'],
          ['New', count(of.added)],
          ['Changed', count(of.changed)],
          ['Ended', count(of.ended)],
          ['The same', count(of.same)],
        ]}
      />
      {of.lines.length > 0 && <DiffLines lines={of.lines} />}
      {of.leaps.length > 0 && (
        <Notice tone="bad" title="Prices that move tenfold or more">
          <ul>
            {of.leaps.map(leap => (
              <li key={leap}>{leap}</li>
            ))}
          </ul>
        </Notice>
      )}
      <Form
        onSubmit={() => void put()}
        submit="Import"
        busy={action.busy}
        problem={action.problem}
        fields={['/name']}
        more={<Button onClick={onBack}>Back to the list</Button>}
      >
        <TextField
          label="Name of the book"
          value={name}
          onInput={setName}
          problem={action.problem}
          at="/name"
          required
          autoFocus
        />
        {of.leaps.length > 0 && <CheckField label="I checked these leaps" checked={confirm_leaps} onInput={setLeaps} />}
        {of.ended > 0 && (
          <CheckField label="Prices that are not in the list may end" checked={confirm_ended} onInput={setEnded} />
        )}
      </Form>
    </>
  )
}

const KINDS: Readonly<Record<string, string>> = { '+': 'plus', '-': 'minus' }

const DiffLines = ({ lines }: { lines: readonly string[] }) => (
  <ScrollBox label="What changes" kind="code">
    <div class="diff">
      {lines.map(line => (
        <div key={line} class={KINDS[line.charAt(0)] ?? ''}>
          {line}
        </div>
      ))}
    </div>
  </ScrollBox>
)
