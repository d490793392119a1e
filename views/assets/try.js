// Shows the answer of a free route below its form. Without this script the form opens the answer as a page.
for (const form of document.querySelectorAll('form.trial')) {
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const filled = [...new FormData(form)].filter(([, value]) => value !== '')
    const query = new URLSearchParams(filled).toString()
    const output = form.querySelector('output')
    output.hidden = false
    output.textContent = 'Asking…'
    try {
      const answer = await fetch(form.getAttribute('action') + (query ? `?${query}` : ''), {
        headers: { accept: 'application/json, text/plain' },
      })
      output.textContent = `${answer.status} ${answer.statusText}\n\n${readable(await answer.text())}`
    } catch (error) {
      output.textContent = `No answer: ${error.message}`
    }
  })
}

function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
