import { useState } from 'preact/hooks'
import { ask } from '../lib/api.ts'
import type { TransferCallRequest } from '../lib/api-types.ts'
import { useAction } from '../lib/data.ts'
import { Button } from '../ui/basics.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Form, TextField } from '../ui/form.tsx'
import { toast } from '../ui/toast.tsx'

interface TransferCallProps {
  readonly call: { readonly id: string; readonly from: string; readonly to: string }
  readonly onClose: () => void
}

/** Asks for the number that a call in progress dials from now on. */
export function TransferCall({ call, onClose }: TransferCallProps) {
  const [to, setTo] = useState('')
  const action = useAction()
  const transfer = async () => {
    const body: TransferCallRequest = { to: to.trim() }
    if (!(await action.run(() => ask('POST', `/v1/live-calls/${call.id}/transfer`, { body, once: true })))) return
    toast('The call is being transferred')
    onClose()
  }
  return (
    <Dialog title="Transfer this call" onClose={onClose}>
      <Form
        onSubmit={() => void transfer()}
        submit="Transfer now"
        busy={action.busy}
        problem={action.problem}
        fields={['/to']}
        disabled={to.trim() === ''}
        more={<Button onClick={onClose}>Cancel</Button>}
      >
        <p>
          The call from {call.from} to {call.to} leaves what it hears now, and dials this number.
        </p>
        <TextField
          label="Number"
          placeholder="+2348030000001"
          value={to}
          onInput={setTo}
          problem={action.problem}
          at="/to"
          autoFocus
        />
      </Form>
    </Dialog>
  )
}
