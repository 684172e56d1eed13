import { signal } from '@preact/signals'

const KEY = 'strowger-theme'
const prefersDark = matchMedia('(prefers-color-scheme: dark)')

const resolved = (): 'light' | 'dark' => {
  const chosen = localStorage.getItem(KEY)
  if (chosen === 'light' || chosen === 'dark') return chosen
  return prefersDark.matches ? 'dark' : 'light'
}

export const theme = signal<'light' | 'dark'>(resolved())

export function applyTheme(): void {
  theme.value = resolved()
  document.documentElement.dataset['theme'] = theme.value
}

prefersDark.addEventListener('change', applyTheme)

export function switchTheme(): void {
  localStorage.setItem(KEY, theme.value === 'dark' ? 'light' : 'dark')
  applyTheme()
}
