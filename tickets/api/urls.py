from django.urls import path

from . import views

urlpatterns = [
    path("tickets/", views.TicketListView.as_view(), name="api-tickets"),
    path("tickets/<int:pk>/", views.TicketView.as_view(), name="api-ticket"),
    path("tickets/<int:pk>/comments/", views.CommentListView.as_view(), name="api-comments"),
    path("tickets/<int:pk>/events/", views.EventListView.as_view(), name="api-events"),
    path("categories/", views.CategoryListView.as_view(), name="api-categories"),
]
