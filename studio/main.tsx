import './style/base.css'
import './style/layout.css'
import './style/parts.css'
import './style/views.css'
import { render } from 'preact'
import { App } from './app.js'
import { beginSession } from './session.js'
import { applyTheme } from './theme.js'

applyTheme()
await beginSession()
const root = document.getElementById('root')
if (root) render(<App />, root)
