import { signal } from '@preact/signals'

const SHOWN_MS = 3500
const toasts = signal<readonly { readonly id: number; readonly text: string }[]>([])
let last = 0

/** Shows a message for a moment. Screen readers announce it. */
export function toast(text: string): void {
  last += 1
  const id = last
  toasts.value = [...toasts.value.slice(-3), { id, text }]
  setTimeout(() => {
    toasts.value = toasts.value.filter(item => item.id !== id)
  }, SHOWN_MS)
}

export const Toasts = () => (
  <div class="toasts" role="status" aria-live="polite">
    {toasts.value.map(item => (
      <div class="toast" key={item.id}>
        {item.text}
      </div>
    ))}
  </div>
)
