// Curves over time: uPlot. Bundled when the server is built; js/plot.js uses it.
export { default } from 'uplot';
