// Puts a copy button on every block of code. Without this script the blocks are plain text to select.
for (const figure of document.querySelectorAll('figure.code')) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'copy'
  button.textContent = 'Copy'
  button.addEventListener('click', () => {
    navigator.clipboard.writeText(figure.querySelector('pre').textContent).then(
      () => (button.textContent = 'Copied'),
      () => (button.textContent = 'Not allowed'),
    )
    setTimeout(() => (button.textContent = 'Copy'), 1500)
  })
  if (navigator.clipboard) figure.append(button)
}
