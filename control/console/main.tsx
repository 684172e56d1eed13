import { render } from 'preact'
import { App } from './app.tsx'
import './style.css'
import { showTexts } from './lib/shown.ts'
import { applyTheme } from './lib/theme.ts'

applyTheme()
showTexts()
const root = document.getElementById('app')
if (root) render(<App />, root)
