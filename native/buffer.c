/*
 * The Python module sparknet.native._buffer: a base class that gives a Python class the buffer
 * protocol. Python has __buffer__ for this from 3.12 on; we serve 3.10 and 3.11 too.
 *
 * Buffer protocol slots joined the stable ABI in 3.11, but work in any 3.10: what its
 * headers hide from extensions for 3.10 is declared here.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { GETBUFFER_SLOT = 1 };

/* The head of Py_buffer. */
typedef struct buffer_view {
    void* data;
    PyObject* owner;
} buffer_view;

extern int PyObject_GetBuffer(PyObject* exporter, buffer_view* view, int flags);

/* Hands the request on to the object that the method _exporter returns. */
static int get_buffer(PyObject* self, buffer_view* view, int flags) {
    PyObject* exporter = PyObject_CallMethod(self, "_exporter", NULL);
    view->owner = NULL;
    if (exporter == NULL) return -1;
    const int status = PyObject_GetBuffer(exporter, view, flags);
    Py_DECREF(exporter);
    return status;
}

/* ISO C has no cast from a function to void *; Python needs one. */
#define SLOT(function) __extension__(void*)(function)

static PyType_Slot slots[] = {
    {Py_tp_doc, (void*)"A class whose method _exporter returns what memoryview(self) shows."},
    {GETBUFFER_SLOT, SLOT(get_buffer)},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "sparknet.native._buffer.Buffer",
    .basicsize = (int)sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    "_buffer",
    "The buffer protocol for Python classes.",
    -1,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
};

PyMODINIT_FUNC PyInit__buffer(void) {
    PyObject* self = PyModule_Create(&module);
    if (self == NULL) return NULL;
    PyObject* type = PyType_FromSpec(&spec);
    if (type != NULL && PyModule_AddObject(self, "Buffer", type) == 0) return self;
    Py_XDECREF(type);
    Py_DECREF(self);
    return NULL;
}
