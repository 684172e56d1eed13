import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import { useAction } from '../lib/data.ts'
import { Button, CopyButton, Notice } from './basics.tsx'
import { Form, TextField } from './form.tsx'
import { Icon } from './icons.tsx'
import { toast } from './toast.tsx'

/** A modal dialog; the browser keeps the focus inside, and Escape closes it. */
export function Dialog({
  title,
  onClose,
  children,
  wide,
}: {
  title: string
  onClose: () => void
  children: ComponentChildren
  wide?: boolean
}) {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const dialog = ref.current
    dialog?.showModal()
    return () => dialog?.close()
  }, [])
  return (
    <dialog ref={ref} class={wide ? 'wide' : ''} aria-labelledby={id} onClose={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
          <Icon name="cross" />
        </button>
      </header>
      <div class="body">{children}</div>
    </dialog>
  )
}

/** Asks before an action. `onConfirm` resolves with whether it succeeded; its problem is shown here. */
function Confirm({
  title,
  verb,
  onClose,
  onConfirm,
  children,
}: {
  title: string
  verb: string
  onClose: () => void
  onConfirm: () => Promise<unknown>
  children: ComponentChildren
}) {
  const action = useAction()
  const submit = async () => {
    if (await action.run(onConfirm)) onClose()
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="stack">{children}</div>
      <Form
        onSubmit={() => void submit()}
        submit={verb}
        busy={action.busy}
        problem={action.problem}
        fields={[]}
        danger
        more={<Button onClick={onClose}>Cancel</Button>}
      >
        {null}
      </Form>
    </Dialog>
  )
}

/** Asks before a call in progress is ended. */
export const ConfirmHangUp = ({
  call,
  onClose,
  onAsked,
}: {
  call: { readonly id: string; readonly from: string; readonly to: string }
  onClose: () => void
  onAsked?: () => void
}) => (
  <Confirm
    title="Hang up this call"
    verb="Hang up now"
    onClose={onClose}
    onConfirm={async () => {
      await ask('POST', `/v1/live-calls/${call.id}/hang-up`)
      toast('The call is being ended')
      onAsked?.()
    }}
  >
    <p>
      {call.from} and {call.to} are cut off at once.
    </p>
  </Confirm>
)

/** Requires the user to type the name before an action that cannot be undone. */
export function ConfirmByName({
  title,
  name,
  verb,
  onClose,
  onConfirm,
  children,
  withReason,
}: {
  title: string
  name: string
  verb: string
  onClose: () => void
  onConfirm: (given: { readonly confirm_name: string; readonly reason: string }) => Promise<unknown>
  children: ComponentChildren
  withReason?: boolean
}) {
  const [typed, setTyped] = useState('')
  const [reason, setReason] = useState('')
  const action = useAction()
  const submit = async () => {
    if (await action.run(() => onConfirm({ confirm_name: typed, reason }))) onClose()
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="stack">{children}</div>
      <Form
        onSubmit={() => void submit()}
        submit={verb}
        busy={action.busy}
        problem={action.problem}
        fields={['/confirm_name', '/reason']}
        danger
        disabled={typed !== name || (withReason === true && reason.trim() === '')}
        more={<Button onClick={onClose}>Cancel</Button>}
      >
        {withReason && (
          <TextField label="Reason" value={reason} onInput={setReason} problem={action.problem} at="/reason" />
        )}
        <TextField
          label={`Type “${name}” to confirm`}
          value={typed}
          onInput={setTyped}
          problem={action.problem}
          at="/confirm_name"
          autoFocus
        />
      </Form>
    </Dialog>
  )
}

/** A secret that the API returns only once. */
export const SecretOnce = ({ value, what, hint }: { value: string; what: string; hint?: string }) => (
  <div class="stack">
    <Notice tone="warn">{hint ?? `This is the only time that ${what} is shown. Copy it now.`}</Notice>
    <div class="secret">
      <code data-secret>{value}</code>
      <CopyButton text={value} what={what} />
    </div>
  </div>
)
